// What is told of the chosen bag.

import { type Atlas, adjacency, compact, shown, unit } from "./atlas";
import { element } from "./dom";

const MOST_NEIGHBOURS = 12;
const MOST_MEMBERS = 20;

export class Panel {
  private readonly lists: ReturnType<typeof adjacency>;

  constructor(
    private readonly atlas: Atlas,
    private readonly holder: HTMLElement,
    private readonly choose: (point: number) => void,
  ) {
    this.lists = adjacency(atlas);
  }

  show(point: number | null): void {
    if (point === null) {
      const how = `Choose a ${unit(this.atlas)}: click a point, search for a bag by name, or take a row of the table.`;
      this.holder.replaceChildren(element("p", { class: "quiet" }, how));
      return;
    }
    const parts: HTMLElement[] = [element("h3", {}, this.atlas.ids[point])];
    if (this.atlas.beliefs[point]) parts.push(element("p", { class: "belief" }, this.atlas.beliefs[point]));
    parts.push(this.facts(point), ...this.members(point), ...this.instances(point), ...this.neighbours(point));
    this.holder.replaceChildren(...parts);
  }

  private facts(point: number): HTMLElement {
    const rows = this.atlas.columns.flatMap((column) => [
      element("dt", {}, column.name),
      element("dd", {}, shown(column, point)),
    ]);
    return element("dl", { class: "facts" }, ...rows);
  }

  private members(point: number): HTMLElement[] {
    const names = this.atlas.members[point] ?? [];
    if (names.length === 0) return [];
    const more = names.length > MOST_MEMBERS ? ` and ${(names.length - MOST_MEMBERS).toLocaleString("en")} more` : "";
    const told = element("p", { class: "quiet" }, names.slice(0, MOST_MEMBERS).join(", ") + more);
    return [element("h4", {}, `Bags (${names.length.toLocaleString("en")})`), told];
  }

  private instances(point: number): HTMLElement[] {
    const told = this.atlas.instances[point];
    if (!told?.length) return [];
    const most = Math.max(...told.map(({ share }) => Math.abs(share ?? 0)), 1e-12);
    const rows = told.map(({ name, share, picture }) => {
      const image = picture ? [element("img", { src: picture, alt: `picture of ${name}`, width: "40", height: "40" })] : [];
      return element("li", {}, ...image, element("span", { class: "name" }, name), ...bar(share ?? 0, most));
    });
    const about = element("p", { class: "quiet" }, `What each adds to the ${this.atlas.about[point]}.`);
    return [element("h4", {}, "Instances that tell most"), about, element("ul", { class: "told" }, ...rows)];
  }

  private neighbours(point: number): HTMLElement[] {
    const list = this.lists[point];
    if (this.atlas.weight.length === 0) return [];
    if (list.length === 0) return [element("h4", {}, "Neighbours"), element("p", { class: "quiet" }, "None.")];
    const label = this.atlas.columns.find((column) => column.name === "label");
    const contributions = this.atlas.neighbors[point] ?? {};
    const rows = list.slice(0, MOST_NEIGHBOURS).map(({ other, edge }) => {
      const button = element("button", { type: "button", class: "link" }, this.atlas.ids[other]);
      button.addEventListener("click", () => this.choose(other));
      const words = [`weight ${compact(this.atlas.weight[edge])}`];
      if (label) words.unshift(`label ${shown(label, other)}`);
      if (contributions[other] !== undefined) words.push(`adds ${signed(contributions[other])}`);
      return element("li", {}, button, element("span", { class: "quiet" }, words.join(", ")));
    });
    const more = list.length - rows.length;
    const rest = more > 0 ? [element("p", { class: "quiet" }, `and ${more} more`)] : [];
    return [element("h4", {}, `Neighbours (${list.length})`), element("ul", { class: "neighbours" }, ...rows), ...rest];
  }
}

function bar(share: number, most: number): HTMLElement[] {
  const width = `${Math.round((100 * Math.abs(share)) / most)}%`;
  const inner = element("span", { class: share < 0 ? "fill against" : "fill" });
  inner.style.width = width;
  return [element("span", { class: "bar", "aria-hidden": "true" }, inner), element("span", { class: "share" }, signed(share))];
}

function signed(value: number): string {
  return `${value < 0 ? "−" : "+"}${compact(Math.abs(value))}`;
}

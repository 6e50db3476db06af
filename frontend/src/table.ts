// All bags as a table: sorted by any column, filtered by the search, a page at a time.

import { type Atlas, type Column, shown, unit } from "./atlas";
import { element, required } from "./dom";

const ROWS = 25;

export class BagTable {
  private order: number[];
  private sorted: { column: number; up: boolean } = { column: -1, up: true };
  private page = 0;
  private words = "";
  private chosen: number | null = null;
  private readonly body = element("tbody");
  private readonly heads: HTMLElement[] = [];
  private readonly place = element("span", { class: "quiet", role: "status" });

  constructor(
    private readonly atlas: Atlas,
    private readonly choose: (point: number) => void,
  ) {
    this.order = atlas.ids.map((_, point) => point);
    const head = element("tr", {}, ...[unit(atlas), ...atlas.columns.map(({ name }) => name)].map((name, i) => this.head(name, i - 1)));
    const table = element("table", {}, element("caption", {}, `All ${unit(atlas)}s`), element("thead", {}, head), this.body);
    const turn = (text: string, by: number) => {
      const button = element("button", { type: "button" }, text);
      button.addEventListener("click", () => this.turn(by));
      return button;
    };
    const scroller = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${unit(atlas)}s` }, table);
    const pager = element("p", { class: "pager" }, turn("Previous", -1), this.place, turn("Next", 1));
    required("bag-table").replaceChildren(scroller, pager);
    this.arrange();
  }

  filter(words: string): void {
    this.words = words.trim().toLowerCase();
    this.page = 0;
    this.arrange();
  }

  mark(point: number | null): void {
    this.chosen = point;
    this.draw();
  }

  private head(name: string, column: number): HTMLElement {
    const button = element("button", { type: "button", class: "sort" }, name);
    const isNumber = column >= 0 && !this.atlas.columns[column].levels;
    const cell = element("th", { scope: "col", ...(isNumber ? { class: "number" } : {}) }, button);
    button.addEventListener("click", () => {
      this.sorted = { column, up: this.sorted.column === column ? !this.sorted.up : true };
      for (const other of this.heads) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", this.sorted.up ? "ascending" : "descending");
      this.page = 0;
      this.arrange();
    });
    this.heads.push(cell);
    return cell;
  }

  private turn(by: number): void {
    const last = Math.max(0, Math.ceil(this.order.length / ROWS) - 1);
    this.page = Math.min(Math.max(this.page + by, 0), last);
    this.draw();
  }

  private arrange(): void {
    const { ids } = this.atlas;
    const all = ids.map((_, point) => point);
    const named = (point: number) => [ids[point], ...(this.atlas.members[point] ?? [])];
    const fits = (point: number) => named(point).some((name) => name.toLowerCase().includes(this.words));
    this.order = this.words ? all.filter(fits) : all;
    const { column, up } = this.sorted;
    if (column >= 0 || !up) this.order.sort((a, b) => (up ? 1 : -1) * this.compare(column, a, b, up));
    this.draw();
  }

  private compare(column: number, a: number, b: number, up: boolean): number {
    if (column < 0) return a - b;
    const values = (this.atlas.columns[column] as Column).values;
    const [x, y] = [values[a], values[b]];
    const last = up ? 1 : -1; // what is not known comes last either way
    if (x === null || y === null) return x === y ? a - b : x === null ? last : -last;
    return x - y || a - b;
  }

  private draw(): void {
    const from = this.page * ROWS;
    const rows = this.order.slice(from, from + ROWS).map((point) => {
      const button = element("button", { type: "button", class: "link" }, this.atlas.ids[point]);
      button.addEventListener("click", () => this.choose(point));
      const cells = this.atlas.columns.map((column) =>
        element("td", column.levels ? {} : { class: "number" }, shown(column, point)),
      );
      const marked: Record<string, string> = point === this.chosen ? { class: "chosen" } : {};
      return element("tr", marked, element("th", { scope: "row" }, button), ...cells);
    });
    this.body.replaceChildren(...rows);
    const to = Math.min(from + ROWS, this.order.length);
    this.place.textContent = this.order.length ? `${from + 1} to ${to} of ${this.order.length.toLocaleString("en")}` : "no bag has that name";
  }
}

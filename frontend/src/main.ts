// The page comes complete from Python; this makes its graph, panel and table live.

import { type Atlas, compact, readAtlas, unit } from "./atlas";
import { element, required } from "./dom";
import { Explorer, type Look } from "./explorer";
import { colours } from "./palette";
import { Panel } from "./panel";
import { BagTable } from "./table";

const SUGGESTIONS = 20;

function start(atlas: Atlas): void {
  const look: Look = { colour: () => "#888888", leastWeight: 0, chosen: null };
  const panel = new Panel(atlas, required("panel"), (point) => choose(point, true));
  const table = new BagTable(atlas, (point) => choose(point, true));
  const explorer = draw(atlas, (point) => choose(point, false));

  function choose(point: number | null, centre: boolean): void {
    look.chosen = point;
    explorer?.show(look);
    if (point !== null && centre) explorer?.centre(point);
    panel.show(point);
    table.mark(point);
  }

  colouring(atlas, (colour) => {
    look.colour = colour;
    explorer?.show(look);
  });
  filtering(atlas, (least) => {
    look.leastWeight = least;
    explorer?.show(look);
  });
  viewing(atlas, (name) => explorer?.view(name));
  searching(atlas, (point) => choose(point, true), (words) => table.filter(words));
  theming(() => explorer?.retheme());
  panel.show(null);
  document.documentElement.dataset.ready = "yes";
}

// Without WebGL the drawing that Python made stays, and everything else works.
function draw(atlas: Atlas, choose: (point: number | null) => void): Explorer | null {
  const holder = required("explorer");
  holder.hidden = false;
  try {
    const explorer = new Explorer(atlas, holder, choose);
    required("still").classList.add("replaced");
    return explorer;
  } catch {
    holder.hidden = true;
    required("explorer-note").textContent = "This browser has no WebGL: the drawing stands still, the table works.";
    return null;
  }
}

function colouring(atlas: Atlas, apply: (colour: (point: number) => string) => void): void {
  const select = required<HTMLSelectElement>("colour-by");
  atlas.columns.forEach(({ name }, i) => select.append(element("option", { value: String(i) }, name)));
  const change = () => {
    const column = atlas.columns[Number(select.value)];
    if (!column) return;
    const { of, legend, range } = colours(column);
    const swatches = legend.map(({ colour, text }) => {
      const dot = element("span", { class: "dot", "aria-hidden": "true" });
      dot.style.background = colour;
      return element("span", { class: "level" }, dot, text);
    });
    if (range) {
      const strip = element("span", { class: "strip", "aria-hidden": "true" });
      strip.style.background = range.gradient;
      swatches.unshift(element("span", { class: "level" }, compact(range.low), strip, compact(range.high)));
    }
    required("legend").replaceChildren(...swatches);
    apply(of);
  };
  select.addEventListener("change", change);
  change();
}

function filtering(atlas: Atlas, apply: (least: number) => void): void {
  const slider = required<HTMLInputElement>("least-weight");
  const told = required("edges-shown");
  const grouped = unit(atlas) === "group";
  const [all, between] = grouped ? [atlas.weight.length, " between groups"] : [atlas.edges, ""];
  const change = () => {
    const least = Number(slider.value) / 100;
    const kept = atlas.weight.filter((weight) => weight >= least).length;
    told.textContent = `${kept.toLocaleString("en")} of ${all.toLocaleString("en")} edges${between}`;
    apply(least);
  };
  if (atlas.weight.length === 0) {
    required("least-weight-choice").hidden = told.hidden = true;
    return;
  }
  slider.addEventListener("input", change);
  change();
}

function viewing(atlas: Atlas, apply: (name: string) => void): void {
  const select = required<HTMLSelectElement>("view");
  const names = Object.keys(atlas.views);
  for (const name of names) select.append(element("option", { value: name }, name));
  required("view-choice").hidden = names.length < 2;
  select.addEventListener("change", () => apply(select.value));
}

function searching(atlas: Atlas, choose: (point: number) => void, filter: (words: string) => void): void {
  const box = required<HTMLInputElement>("search");
  const list = required("search-names");
  const place = new Map(atlas.ids.map((id, point) => [id, point]));
  atlas.members.forEach((names, point) => names.forEach((name) => place.set(name, point)));
  const names = [...place.keys()];
  const matching = (words: string) => {
    const found: string[] = [];
    for (const name of names) {
      if (name.toLowerCase().includes(words)) found.push(name);
      if (found.length === SUGGESTIONS) break;
    }
    return found;
  };
  box.addEventListener("input", () => {
    const words = box.value.trim().toLowerCase();
    list.replaceChildren(...(words ? matching(words) : []).map((value) => element("option", { value })));
    filter(words);
    const exact = place.get(box.value.trim());
    if (exact !== undefined) choose(exact);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    const first = place.get(box.value.trim()) ?? place.get(matching(box.value.trim().toLowerCase())[0]);
    if (first !== undefined) choose(first);
  });
}

function theming(changed: () => void): void {
  const button = required<HTMLButtonElement>("theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const name = () => (button.textContent = isDark() ? "Light" : "Dark");
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
    changed();
  });
  dark.addEventListener("change", () => {
    name();
    changed();
  });
  name();
}

const atlas = readAtlas();
// The words of the page are painted before the work on its graph begins; a page in the background is not painted at all.
if (atlas && document.hidden) start(atlas);
else if (atlas) requestAnimationFrame(() => setTimeout(() => start(atlas)));
else theming(() => undefined);

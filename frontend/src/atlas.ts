// What Python wrote into the page (report/atlas.py).

export interface Column {
  name: string;
  levels: string[] | null; // null: values are numbers; otherwise positions among these
  values: (number | null)[];
}

export interface Told {
  name: string;
  share: number | null;
  picture?: string;
}

export interface Atlas {
  ids: string[];
  columns: Column[];
  views: Record<string, [number[], number[]]>;
  source: number[];
  target: number[];
  weight: number[];
  beliefs: string[];
  instances: Record<string, Told[]>;
  neighbors: Record<string, Record<string, number>>;
  about: Record<string, string>;
  bags: number;
  edges: number;
  members: string[][]; // names of the bags of every point, where points are groups
}

// What a point is called: a bag, or a group of them.
export function unit(atlas: Atlas): string {
  return atlas.ids.length < atlas.bags ? "group" : "bag";
}

export function readAtlas(): Atlas | null {
  const holder = document.getElementById("atlas");
  return holder?.textContent ? (JSON.parse(holder.textContent) as Atlas) : null;
}

export function shown(column: Column, point: number): string {
  const value = column.values[point];
  if (value === null) return "not known";
  return column.levels ? column.levels[value] : compact(value);
}

export function compact(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e6) return value.toLocaleString("en");
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

// Neighbours of every point with the number of the edge that leads there, heaviest first.
export function adjacency(atlas: Atlas): { other: number; edge: number }[][] {
  const lists: { other: number; edge: number }[][] = atlas.ids.map(() => []);
  atlas.weight.forEach((_, edge) => {
    lists[atlas.source[edge]].push({ other: atlas.target[edge], edge });
    lists[atlas.target[edge]].push({ other: atlas.source[edge], edge });
  });
  for (const list of lists) list.sort((a, b) => atlas.weight[b.edge] - atlas.weight[a.edge]);
  return lists;
}

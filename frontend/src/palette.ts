// Colours that stay apart for colour-blind readers, on light and on dark ground.

import type { Column } from "./atlas";

// Okabe & Ito, ordered so that the first two differ most; then darker and lighter kin of them.
const LEVELS = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
  "#8c6d1f", "#7a5195", "#5f6b73", "#3b7a57", "#b2476b", "#8ea7c2",
];
const SEQUENCE = ["#1d4a8c", "#4a5f86", "#737378", "#a1976f", "#cfb751", "#eccb2f"]; // dark to light, blue to yellow
const DIVERGING = ["#b35806", "#f1a340", "#d8d3cb", "#7fb0d8", "#1b6ca8"]; // below zero, zero, above
export const UNKNOWN = "#9aa0a6";

export interface Colours {
  of: (point: number) => string;
  legend: { colour: string; text: string }[];
  range: { low: number; high: number; gradient: string } | null;
}

export function colours(column: Column): Colours {
  const anyUnknown = column.values.some((value) => value === null);
  const unknown = anyUnknown ? [{ colour: UNKNOWN, text: "not known" }] : [];
  if (column.levels) {
    const levels = column.levels;
    return {
      of: (point) => colourOfLevel(column.values[point]),
      legend: [...levels.map((text, level) => ({ colour: LEVELS[level % LEVELS.length], text })), ...unknown],
      range: null,
    };
  }
  const { low, high, stops } = scale(column);
  const at = (value: number) => blend(stops, high > low ? (value - low) / (high - low) : 0.5);
  return {
    of: (point) => {
      const value = column.values[point];
      return value === null ? UNKNOWN : at(value);
    },
    legend: unknown,
    range: { low, high, gradient: `linear-gradient(to right, ${stops.join(", ")})` },
  };
}

function colourOfLevel(value: number | null): string {
  return value === null ? UNKNOWN : LEVELS[value % LEVELS.length];
}

// Numbers on both sides of zero get a scale that is symmetric around it; outliers do not stretch it.
function scale(column: Column): { low: number; high: number; stops: string[] } {
  const known = column.values.filter((value): value is number => value !== null).sort((a, b) => a - b);
  if (known.length === 0) return { low: 0, high: 1, stops: SEQUENCE };
  const quantile = (share: number) => known[Math.round(share * (known.length - 1))];
  const [low, high] = [quantile(0.01), quantile(0.99)];
  if (low < 0 && high > 0) {
    const reach = Math.max(-low, high);
    return { low: -reach, high: reach, stops: DIVERGING };
  }
  return { low, high, stops: SEQUENCE };
}

function blend(stops: string[], share: number): string {
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.min(Math.floor(place), stops.length - 2);
  const part = (from: number) => {
    const [a, b] = [below, below + 1].map((stop) => parseInt(stops[stop].slice(from, from + 2), 16));
    return Math.round(a + (b - a) * (place - below)).toString(16).padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`;
}

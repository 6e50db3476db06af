// The drawing of points and edges: sigma.js on WebGL.

import Graph from "graphology";
import Sigma from "sigma";
import type { Settings } from "sigma/settings";
import type { NodeDisplayData, PartialButFor } from "sigma/types";
import type { Atlas } from "./atlas";

const PAN = 0.1; // of the picture, for one press of an arrow key

export interface Look {
  colour: (point: number) => string;
  leastWeight: number;
  chosen: number | null;
}

export class Explorer {
  private readonly graph: Graph;
  private readonly sigma: Sigma;
  private look: Look = { colour: () => "#888888", leastWeight: 0, chosen: null };
  private near = new Set<string>();
  private theme: Theme;

  constructor(
    private readonly atlas: Atlas,
    private readonly holder: HTMLElement,
    choose: (point: number | null) => void,
  ) {
    this.graph = build(atlas);
    this.theme = themeOf(holder);
    this.sigma = new Sigma(this.graph, holder, this.settings());
    this.sigma.on("clickNode", ({ node }) => choose(Number(node)));
    this.sigma.on("clickStage", () => choose(null));
    this.sigma.on("enterNode", () => (holder.style.cursor = "pointer"));
    this.sigma.on("leaveNode", () => (holder.style.cursor = ""));
    holder.addEventListener("keydown", (event) => this.steer(event));
    this.view(Object.keys(atlas.views)[0]);
  }

  show(look: Look): void {
    this.look = look;
    this.near = new Set(look.chosen === null ? [] : this.graph.neighbors(String(look.chosen)));
    this.sigma.refresh({ skipIndexation: true });
  }

  view(name: string): void {
    const [x, y] = this.atlas.views[name];
    this.graph.updateEachNodeAttributes((node, attributes) => {
      attributes.x = x[Number(node)];
      attributes.y = y[Number(node)];
      return attributes;
    });
    this.sigma.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  }

  centre(point: number): void {
    const place = this.sigma.getNodeDisplayData(String(point));
    const camera = this.sigma.getCamera();
    if (place) void camera.animate({ x: place.x, y: place.y, ratio: Math.min(camera.ratio, 0.6) }, { duration: calm() });
  }

  // Colours of labels come from the page, so they follow its theme.
  retheme(): void {
    this.theme = themeOf(this.holder);
    this.sigma.setSetting("labelColor", { color: this.theme.ink });
    this.sigma.refresh({ skipIndexation: true });
  }

  private settings(): Partial<Settings> {
    return {
      labelColor: { color: this.theme.ink },
      labelFont: "system-ui, sans-serif",
      labelSize: 12,
      labelDensity: 0.6,
      labelRenderedSizeThreshold: 7,
      hideEdgesOnMove: this.atlas.weight.length > 20_000,
      minCameraRatio: 0.02,
      maxCameraRatio: 4,
      zIndex: true,
      allowInvalidContainer: true,
      defaultDrawNodeHover: (context, data, settings) => drawHover(context, data, settings, this.theme),
      nodeReducer: (node, data) => this.dressNode(node, data),
      edgeReducer: (edge, data) => this.dressEdge(edge, data),
    };
  }

  private dressNode(node: string, data: Record<string, unknown>): Partial<NodeDisplayData> {
    const point = Number(node);
    const { chosen } = this.look;
    const dressed = { ...data, color: this.look.colour(point) } as Partial<NodeDisplayData>;
    if (chosen === null) return dressed;
    if (point === chosen) return { ...dressed, size: (data.size as number) * 1.9, zIndex: 2, highlighted: true };
    if (this.near.has(node)) return { ...dressed, zIndex: 1, forceLabel: this.near.size < 12 };
    return { ...dressed, color: mixed(dressed.color as string, this.theme.ground, 0.7), label: null };
  }

  private dressEdge(edge: string, data: Record<string, unknown>): Record<string, unknown> {
    const number = Number(edge);
    if (this.atlas.weight[number] < this.look.leastWeight) return { ...data, hidden: true };
    const { chosen } = this.look;
    const plain = { ...data, color: mixed(this.theme.edge, this.theme.ground, 0.6 - 0.6 * this.atlas.weight[number]) };
    if (chosen === null) return plain;
    const touches = this.atlas.source[number] === chosen || this.atlas.target[number] === chosen;
    return touches ? { ...data, color: this.theme.ink, size: 2, zIndex: 1 } : { ...plain, color: this.theme.faint };
  }

  private steer(event: KeyboardEvent): void {
    const camera = this.sigma.getCamera();
    const { x, y, ratio } = camera.getState();
    const step = PAN * ratio;
    const moves: Record<string, Partial<{ x: number; y: number; ratio: number }>> = {
      ArrowLeft: { x: x - step },
      ArrowRight: { x: x + step },
      ArrowUp: { y: y + step },
      ArrowDown: { y: y - step },
      "+": { ratio: ratio / 1.3 },
      "=": { ratio: ratio / 1.3 },
      "-": { ratio: ratio * 1.3 },
      "0": { x: 0.5, y: 0.5, ratio: 1 },
    };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    camera.setState(move);
  }
}

function build(atlas: Atlas): Graph {
  const graph = new Graph({ type: "undirected", multi: false });
  const size = Math.min(9, Math.max(2, 60 / Math.sqrt(atlas.ids.length + 20)));
  const [x, y] = Object.values(atlas.views)[0];
  atlas.ids.forEach((label, point) => graph.addNode(String(point), { label, size, x: x[point], y: y[point] }));
  atlas.weight.forEach((weight, edge) => {
    graph.addEdgeWithKey(String(edge), String(atlas.source[edge]), String(atlas.target[edge]), { size: 0.4 + 1.4 * weight });
  });
  return graph;
}

function drawHover(
  context: CanvasRenderingContext2D,
  data: PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color">,
  settings: Settings,
  theme: Theme,
): void {
  context.beginPath();
  context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
  context.strokeStyle = theme.ink;
  context.lineWidth = 2;
  context.stroke();
  if (!data.label) return;
  context.font = `${settings.labelSize}px ${settings.labelFont}`;
  const [left, width] = [data.x + data.size + 7, context.measureText(data.label).width];
  context.fillStyle = theme.ground;
  context.fillRect(left - 3, data.y - settings.labelSize * 0.8, width + 6, settings.labelSize * 1.6);
  context.fillStyle = theme.ink;
  context.fillText(data.label, left, data.y + settings.labelSize / 3);
}

// Solid colours only: what is half transparent adds up where edges cross.
interface Theme {
  ink: string;
  ground: string;
  edge: string;
  faint: string;
}

function themeOf(holder: HTMLElement): Theme {
  const style = getComputedStyle(holder);
  const [ink, ground] = [hex(style.color), hex(style.backgroundColor)];
  return { ink, ground, edge: mixed(ink, ground, 0.5), faint: mixed(ink, ground, 0.9) };
}

function hex(css: string): string {
  const parts = css.match(/\d+(\.\d+)?/g) ?? ["128", "128", "128"];
  return `#${parts.slice(0, 3).map((part) => Math.round(Number(part)).toString(16).padStart(2, "0")).join("")}`;
}

function mixed(from: string, to: string, share: number): string {
  const part = (at: number) => {
    const [a, b] = [from, to].map((colour) => parseInt(colour.slice(at, at + 2), 16));
    return Math.round(a + (b - a) * Math.max(share, 0)).toString(16).padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`;
}

function calm(): number {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 300;
}

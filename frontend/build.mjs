// Bundles src/main.ts into the one file that the Python package carries.
import { build } from "esbuild";

await build({
  entryPoints: ["src/main.ts"],
  outfile: "../src/baggraph/report/assets/page.js",
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "inline",
});

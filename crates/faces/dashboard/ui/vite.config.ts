import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { splitText, textAreas } from "./split-text.mjs";

// The service that answers requests while the UI is worked on: `npm run dev` in this folder.
const service = process.env["SERVICE"] ?? "http://localhost:8080";
const served = ["/api", "/session", "/sign-in", "/sign-out", "/account", "/apps", "/start", "/approvals", "/invite", "/reauthenticate", "/docs", "/hooks", "^/[df]/"];

export default defineConfig(({ command }) => ({
  // The program puts the digest of the whole build into the page's addresses; files find each other by relative ones.
  base: command === "serve" ? "/app/" : "./",
  // The names of styles follow from their content: by default they follow from where the packages are installed.
  plugins: [svelte({ compilerOptions: { cssHash: ({ hash, css }) => `svelte-${hash(css)}` } }), splitText()],
  // The program builds without node, so the bundle is committed, and its names must not change with its content.
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        // What pages share is one file each, so that the names do not depend on which pages share it.
        codeSplitting: {
          groups: [
            // A group takes what its modules need, so the first ones are those that others need: also what loads parts of a page.
            { name: "svelte", test: /node_modules\/(?!@xyflow|@svelte-put|d3-)|vite\/preload-helper/, priority: 3 },
            // The texts of each area, for the pages of the area.
            ...textAreas().map((area) => ({ name: `text-${area}`, test: new RegExp(`/src/text/en/${area}\\.ts$`), priority: 4 })),
            // What ids there are is for the inspector and for searches.
            { name: "lib", test: /\/src\/(lib\/(?!ids\.|JsonLinks)|text)/, priority: 2 },
            { name: "ids", test: /\/src\/lib\/ids\.ts$/ },
            // What the canvas of a flow, its outline, its settings, versions and runs share.
            { name: "flow", test: /\/src\/(pages\/flows\/canvas\/(graph|kinds|marks|view|Outline|Picture|ViewSwitch)|types\/nodes)/ },
            // Only the drawing of a flow loads this.
            { name: "xyflow", test: /node_modules/, priority: 1 },
            { name: "forms", test: /\/src\/(pages\/flows\/form|types\/forms)/ },
          ],
        },
      },
    },
  },
  server: { proxy: Object.fromEntries(served.map((path) => [path, service])) },
}));

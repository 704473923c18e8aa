// Starts the installed Chromium, without anything that asks the network on its own.

import { chromium } from "playwright-core";

const QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [...QUIET, ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
  });
}

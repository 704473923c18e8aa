// Browsers as they name themselves.

const BROWSERS = [["Edg/", "Edge"], ["OPR/", "Opera"], ["Firefox/", "Firefox"], ["Chrome/", "Chrome"], ["Safari/", "Safari"]] as const;
const SYSTEMS = [["Android", "Android"], ["iPhone", "iPhone"], ["iPad", "iPad"], ["CrOS", "ChromeOS"], ["Windows", "Windows"], ["Mac OS", "macOS"], ["Linux", "Linux"]] as const;

/** Returns the browser and its system, as far as the header `User-Agent` tells them. Many browsers name others too, so the order matters. */
export function browserOf(userAgent: string): { browser: string | undefined; system: string | undefined } {
  const known = (names: readonly (readonly [string, string])[]) => names.find(([mark]) => userAgent.includes(mark))?.[1];
  return { browser: known(BROWSERS), system: known(SYSTEMS) };
}

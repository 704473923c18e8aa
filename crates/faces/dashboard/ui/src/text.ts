// The texts of the chosen language. A language is a folder of the type of `text/en`. The build loads only what a page uses
// (`split-text.mjs`), so `t` always stands in front of a name.

import { en, type Text } from "./text/en";

export { locale } from "./text/locale";
export const t: Text = en;

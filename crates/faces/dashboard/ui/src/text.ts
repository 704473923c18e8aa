// The texts of the chosen language. A language is one file of the type of `text/en.ts`.

import { en, type Text } from "./text/en";

export const locale = "en";
export const t: Text = en;

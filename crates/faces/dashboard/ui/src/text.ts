// The texts of the chosen language. A language is a folder of the type of `text/en`.

import { en, type Text } from "./text/en";

export const locale = "en";
export const t: Text = en;

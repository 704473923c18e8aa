// All texts of the dashboard in English: one file for each section. Another language is a folder of the same type.

import { developers } from "./developers";
import { frame } from "./frame";
import { home } from "./home";
import { settings } from "./settings";

export const en = { ...developers, ...frame, ...home, ...settings };

export type Text = typeof en;

// All texts of the dashboard in English: one file for each section. Another language is a folder of the same type.

import { agents } from "./agents";
import { automations } from "./automations";
import { channels } from "./channels";
import { collections } from "./collections";
import { collectionLooks } from "./collectionLooks";
import { connect } from "./connect";
import { contact } from "./contact";
import { contacts } from "./contacts";
import { developers } from "./developers";
import { flowparts } from "./flowparts";
import { flows } from "./flows";
import { frame } from "./frame";
import { home } from "./home";
import { imports } from "./imports";
import { inbox } from "./inbox";
import { installation } from "./installation";
import { settings } from "./settings";
import { tools } from "./tools";
import { workbench } from "./workbench";

const parts = [agents, automations, channels, collections, collectionLooks, connect, contact, contacts, developers, flowparts, flows, frame, home, imports, inbox, installation, settings, tools, workbench] as const;

type KeyOf<T> = T extends readonly [infer First, ...infer Rest] ? keyof First | KeyOf<Rest> : never;
type Twice<T> = T extends readonly [infer First, ...infer Rest] ? Extract<keyof First, KeyOf<Rest>> | Twice<Rest> : never;
// A name that two files have would hide one of them, so it does not compile.
true satisfies [Twice<typeof parts>] extends [never] ? true : Twice<typeof parts>;

export const en = { ...agents, ...automations, ...channels, ...collections, ...collectionLooks, ...connect, ...contact, ...contacts, ...developers, ...flowparts, ...flows, ...frame, ...home, ...imports, ...inbox, ...installation, ...settings, ...tools, ...workbench };

export type Text = typeof en;

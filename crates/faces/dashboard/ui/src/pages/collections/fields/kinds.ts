// The kinds of fields: how their values are shown and edited, and which options they take (docs/data.md).

import type { Schemas } from "../../../types/api";

export type Kind = Schemas["FieldType"];
export type FieldDef = Schemas["CollectionField"];
export type Item = Schemas["Item"];
export type Options = Schemas["FieldOptions"];
export type Option = Exclude<keyof Options, "result_type" | "result_error" | "reverse_field_id">;

/** The control that edits values of a kind. */
export type Control = "text" | "area" | "number" | "boolean" | "date" | "datetime" | "time" | "duration" | "rating" | "choice" | "choices" | "tags" | "objects" | "json";

interface KindDef {
  /** None: the service sets the values. */
  control?: Control;
  options: readonly Option[];
  width: number;
  isNumber?: boolean;
}

const text: readonly Option[] = ["max_length", "pattern"];
const decimal: readonly Option[] = ["precision", "min", "max"];

export const kinds: Record<Kind, KindDef> = {
  text: { control: "text", options: text, width: 200 },
  long_text: { control: "area", options: text, width: 240 },
  email: { control: "text", options: text, width: 200 },
  url: { control: "text", options: text, width: 200 },
  phone: { control: "text", options: [...text, "default_country"], width: 144 },
  number: { control: "number", options: decimal, width: 104, isNumber: true },
  currency: { control: "number", options: ["currency", ...decimal], width: 112, isNumber: true },
  percent: { control: "number", options: decimal, width: 96, isNumber: true },
  rating: { control: "rating", options: ["max"], width: 112 },
  duration: { control: "duration", options: decimal, width: 104, isNumber: true },
  integer: { control: "number", options: ["min", "max"], width: 96, isNumber: true },
  auto_number: { options: [], width: 88, isNumber: true },
  boolean: { control: "boolean", options: [], width: 88 },
  date: { control: "date", options: [], width: 120 },
  datetime: { control: "datetime", options: ["time_zone"], width: 168 },
  time: { control: "time", options: [], width: 88 },
  select: { control: "choice", options: ["choices"], width: 144 },
  multi_select: { control: "choices", options: ["choices"], width: 184 },
  tags: { control: "tags", options: [], width: 160 },
  relation: { control: "objects", options: ["target_collection_id", "cardinality", "on_delete", "reverse_field_key"], width: 200 },
  contact: { control: "objects", options: ["max_items"], width: 160 },
  user: { control: "objects", options: ["max_items"], width: 160 },
  file: { control: "objects", options: ["max_items"], width: 160 },
  json: { control: "json", options: ["json_schema"], width: 184 },
  formula: { options: ["expression"], width: 128 },
  rollup: { options: ["relation", "field", "aggregate"], width: 128 },
  lookup: { options: ["relation", "field"], width: 144 },
  created_at: { options: [], width: 168 },
  updated_at: { options: [], width: 168 },
  created_by: { options: [], width: 160 },
};

/** Kinds in the order in which they are offered. */
export const offered = Object.keys(kinds) as Kind[];

/** Kinds whose values can be an empty text. */
export const isText = (kind: Kind) => kinds[kind].control === "text" || kinds[kind].control === "area";

/** The kind of the values: that of the result for computed fields. */
export const resultOf = (field: FieldDef): Kind => field.options.result_type ?? field.type;

/** Whether people can change the values of a field. */
export const isEditable = (field: FieldDef) => kinds[field.type].control !== undefined && !field.computed && !field.system;

/** Kinds whose values are ids of other objects, with the scope that their names need. */
export const scopes: Partial<Record<Kind, string>> = { relation: "items:read", contact: "contacts:read", user: "conversations:read", file: "files:read" };

/** Whether a field takes one id at most. */
export const isSingle = (field: FieldDef) => (field.type === "relation" ? field.options.cardinality === "one" : field.options.max_items === 1);

/** Whether a field can make the columns of a board, or put records on the days of a calendar. */
export const isBy = (look: "grid" | "board" | "calendar", field: FieldDef) => !field.computed && (look === "board" ? field.type === "select" : look === "calendar" && /^(date|datetime|created_at|updated_at)$/.test(field.type));

/** Whether an item has a value. An empty text is one. */
export const hasValue = (value: unknown) => value !== undefined && value !== null;

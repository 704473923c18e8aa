// What all parts of the section need: fields, operators, the team and the tags.

import { api } from "../../lib/api";
import { Query } from "../../lib/query.svelte";
import { session } from "../../lib/session.svelte";
import type { Schemas } from "../../types/api";
import { fieldsOf, type FieldDef, type Op } from "./fields";

export class ContactData {
  #fields = new Query<FieldDef[]>(async (signal) => {
    const own = session.can("variables:read") ? api.get("/variables/contact-fields", { signal }).then(({ data }) => data) : Promise.resolve([]);
    const [system, ours] = await Promise.all([api.get("/contacts/system-fields", { signal }), own]);
    return fieldsOf(system.data, ours);
  });
  #operators = new Query(async (signal) => (await api.get("/items/filter-operators", { signal })).data);
  #team = new Query(async (signal) => (session.can("conversations:read") ? (await api.get("/team", { signal })).data : []));
  #tags = new Query(async (signal) => (await api.get("/contacts/tags", { signal })).data);

  get source() {
    return this.#fields;
  }
  get fields(): FieldDef[] {
    return this.#fields.data ?? [];
  }
  operators: ReadonlyMap<string, readonly Op[]> = $derived(new Map((this.#operators.data ?? []).map(({ type, operators }) => [type, operators])));
  sortable: ReadonlySet<string> = $derived(new Set((this.#operators.data ?? []).filter((one) => one.sortable).map(({ type }) => type)));
  get team(): readonly Schemas["TeamMember"][] {
    return this.#team.data ?? [];
  }
  get tags(): readonly string[] {
    return (this.#tags.data ?? []).map(({ name }) => name);
  }
  field(key: string): FieldDef | undefined {
    return this.fields.find((field) => field.key === key);
  }
  member(id: number): string {
    return this.team.find((member) => member.id === id)?.name ?? `#${id}`;
  }
}

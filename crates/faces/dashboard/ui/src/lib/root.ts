// Where the service is: the addresses of the files tell the path below which a proxy serves it.

const [before = ""] = new URL(import.meta.url).pathname.split("/app/assets/");

/** The path of the service, without a slash at its end. */
export const root: string = import.meta.env.DEV ? "" : before;

/** The version of this bundle, which the service also names in its answers. */
export const version: string = import.meta.env.DEV ? "" : (new URL(import.meta.url).pathname.split("/app/assets/")[1] ?? "").split("/")[0] ?? "";

// The looks of a collection besides the grid, which are loaded when they are first shown.

export const board = () => import("./board/Board.svelte").then((loaded) => loaded.default);
export const calendar = () => import("./calendar/Calendar.svelte").then((loaded) => loaded.default);

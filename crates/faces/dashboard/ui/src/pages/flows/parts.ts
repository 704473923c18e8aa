// The parts of a flow that are loaded when they are first shown.

export const conflict = () => import("./dialogs").then(({ Conflict }) => Conflict);
export const issueList = () => import("./dialogs").then(({ IssueList }) => IssueList);
export const newFlow = () => import("./dialogs").then(({ NewFlow }) => NewFlow);
export const publish = () => import("./dialogs").then(({ Publish }) => Publish);
export const flowSettings = () => import("./settings").then(({ FlowSettings }) => FlowSettings);
export const nodePanel = () => import("./settings").then(({ NodePanel }) => NodePanel);
export const testRun = () => import("./settings").then(({ TestRun }) => TestRun);
export const variables = () => import("./settings").then(({ Variables }) => Variables);
export const versions = () => import("./Versions.svelte").then((loaded) => loaded.default);
export const flowRuns = () => import("./runs/FlowRuns.svelte").then((loaded) => loaded.default);

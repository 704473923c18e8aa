// The parts of a flow with forms that are made of schemas. The schemas are large, and come with the first form.

import FlowSettings from "./FlowSettings.svelte";
import NodePanel from "./canvas/NodePanel.svelte";
import TestRun from "./runs/TestRun.svelte";
import Variables from "./Variables.svelte";

export { FlowSettings, NodePanel, TestRun, Variables };

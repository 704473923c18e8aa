// What buttons of a flow open. It is loaded then, because the first picture of a flow needs none of it.

import Conflict from "./Conflict.svelte";
import IssueList from "./canvas/IssueList.svelte";
import NewFlow from "./NewFlow.svelte";
import Publish from "./Publish.svelte";

export { Conflict, IssueList, NewFlow, Publish };

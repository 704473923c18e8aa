// The areas of the dashboard with their journeys, in the order in which they go.
//
// Each journey gets `{ browser, origin, view, state, person, folder, call, chat, hook, key }` and a view of its own, which is signed in as
// the owner. An area signs in anew, because changes of access need a password that is younger than ten minutes.

import { agentParts, agents, channels, playgroundDecides } from "./agents.mjs";
import { allKinds, cells, fieldsAndImport, longGrid, manyOrders, record } from "./collections.mjs";
import { bulk, bulkOnPhone, undo, withRepairs } from "./collection-changes.mjs";
import { board, boardOnPhone, calendar, calendarOnPhone } from "./collection-looks.mjs";
import * as contacts from "./contacts.mjs";
import { automations, flowByKeyboard, flowConflict, flowOnCanvas } from "./flows.mjs";
import { hostileTexts } from "./hostile.mjs";
import * as inbox from "./inbox.mjs";
import { oneChannel, refusedFiles, sendFiles } from "./inbox-files.mjs";
import { sessionEnds, webhooks } from "./journeys.mjs";
import { account, audit, business, installation, team } from "./settings.mjs";
import { inboundWebhooks, inspector, shell, shellByKeyboard } from "./tools.mjs";
import { keyToSuccess, logs, overviewAndHealth, rotateAndRevoke, workbenchStates } from "./workbench.mjs";

const RECORDS = 5000;

/** Goes through a journey with a collection that has a field of each kind, which is deleted afterwards. */
const withKinds = (journey) => async (given) => {
  const products = (await given.call("GET", "/collections")).find(({ name }) => name === "Products");
  const collection = await allKinds(given.call, products.id);
  try {
    await journey({ ...given, collection });
  } finally {
    await given.call("DELETE", `/collections/${collection.id}`);
  }
};

/** Goes through a journey on a phone. */
const onPhone = (journey) => Object.assign((given) => journey(given), { width: 360 });

export const AREAS = {
  webhooks: { webhooks },
  workbench: {
    keys: async (given) => rotateAndRevoke(given, await keyToSuccess(given)),
    overviewAndHealth,
    logs,
    workbenchStates,
  },
  inbox: { takeOver: inbox.takeOver, drafts: inbox.drafts, conversationStates: inbox.states, quickReply: inbox.quickReply, together: inbox.together, sendFiles, refusedFiles, oneChannel, phone: onPhone(inbox.phone), sendFilesOnPhone: onPhone(sendFiles) },
  contacts: {
    createAndFilter: contacts.createAndFilter,
    twoSave: contacts.twoSave,
    importRows: contacts.importRows,
    merge: contacts.merge,
    exportAndBulk: contacts.exportAndBulk,
    hostile: contacts.hostile,
    appUrl: contacts.appUrl,
    twoSaveOnPhone: onPhone(contacts.twoSave),
    hostileOnPhone: onPhone(contacts.hostile),
  },
  agents: { agents, agentParts, playgroundDecides, channels, agentsOnPhone: onPhone(agents) },
  collections: {
    longGrid: async (given) => longGrid({ ...given, id: await manyOrders(given.call, RECORDS), count: RECORDS }),
    cells: withKinds(cells),
    record: withKinds(record),
    fieldsAndImport: withKinds(fieldsAndImport),
    undo: withRepairs(undo),
    bulk: withRepairs(bulk),
    bulkOnPhone: onPhone(withRepairs(bulkOnPhone)),
    board: withRepairs(board),
    boardOnPhone: onPhone(withRepairs(boardOnPhone)),
    calendar: withRepairs(calendar),
    calendarOnPhone: onPhone(withRepairs(calendarOnPhone)),
  },
  flows: { flowOnCanvas, flowByKeyboard, flowConflict, automations },
  tools: { shell, shellByKeyboard, inspector, inboundWebhooks },
  settings: { team, audit, business, installation, account, sessionEnds },
  hostile: { hostileTexts },
};

"use strict";

const element = (id) => document.getElementById(id);
let customer = null;
let shown = "";

async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch("/control" + path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function report(error) {
  element("state").textContent = error ? String(error.message || error) : "";
}

async function refreshCustomers() {
  const { data } = await ask("GET", "/users");
  const list = element("customers");
  const names = data.map((user) => [user.user_id, user.name || user.username || user.phone || user.user_id]);
  if (list.dataset.names === JSON.stringify(names)) return;
  list.dataset.names = JSON.stringify(names);
  list.replaceChildren(...names.map(([id, name]) => new Option(name, id)));
  if (!customer && names.length) customer = names[0][0];
  if (customer && !names.some(([id]) => id === customer)) customer = names.length ? names[0][0] : null;
  list.value = customer || "";
}

function line(entry) {
  const item = document.createElement("li");
  item.className = entry.is_ours ? "business" : "mine";
  item.append(entry.text);
  if (entry.buttons.length) {
    const choices = document.createElement("div");
    choices.className = "choices";
    for (const title of entry.buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title;
      button.addEventListener("click", () => act({ do: "press", button: title }));
      choices.append(button);
    }
    item.append(choices);
  }
  const note = document.createElement("small");
  const ticks = { accepted: "…", sent: "✓", delivered: "✓✓", read: "✓✓ read", failed: "failed" };
  const time = new Date(entry.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  note.textContent = entry.status ? `${time} ${ticks[entry.status] || entry.status}` : time;
  item.append(note);
  return item;
}

async function refreshChat() {
  if (!customer) return;
  const read = document.visibilityState === "visible";
  const { data } = await ask("GET", `/users/${encodeURIComponent(customer)}/chat?read=${read}`);
  const now = customer + JSON.stringify(data);
  if (now === shown) return;
  shown = now;
  const option = element("customers").selectedOptions[0];
  element("who").textContent = option ? option.textContent : "";
  element("chat").replaceChildren(...data.map(line));
  element("chat").scrollTop = element("chat").scrollHeight;
}

async function refresh() {
  try {
    await refreshCustomers();
    await refreshChat();
  } catch (error) {
    report(error);
  }
}

async function act(action) {
  if (!customer) return report("Add a customer first.");
  try {
    await ask("POST", `/users/${encodeURIComponent(customer)}/actions`, action);
    report();
    await refresh();
  } catch (error) {
    report(error);
  }
}

function take() {
  const field = element("text");
  const text = field.value.trim();
  field.value = "";
  field.focus();
  return text;
}

element("compose").addEventListener("submit", (event) => {
  event.preventDefault();
  const body = take();
  if (body) act({ do: "text", body });
});
element("voice").addEventListener("click", () => {
  const words = take();
  if (words) act({ do: "voice_note", words });
});
element("customers").addEventListener("change", (event) => {
  customer = event.target.value;
  refresh();
});
element("create").addEventListener("submit", async (event) => {
  event.preventDefault();
  const phone = element("phone").value.trim();
  const name = element("name").value.trim();
  try {
    const user = await ask("POST", "/users", phone ? { name, phone } : { name });
    customer = user.user_id;
    event.target.reset();
    report();
    await refresh();
    element("customers").value = customer;
  } catch (error) {
    report(error);
  }
});

refresh();
setInterval(refresh, 500);

import { mount } from "svelte";
import "./style.css";
import App from "./App.svelte";
import { showMarks } from "./lib/marks";
import { settings } from "./lib/settings.svelte";

settings.apply();
showMarks(document.body);
const target = document.getElementById("app");
if (target) mount(App, { target });

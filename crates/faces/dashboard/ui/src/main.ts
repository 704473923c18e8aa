import { mount } from "svelte";
import "./style.css";
import App from "./App.svelte";
import { settings } from "./lib/settings.svelte";

settings.apply();
const target = document.getElementById("app");
if (target) mount(App, { target });

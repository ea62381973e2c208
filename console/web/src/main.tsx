// The entry of the console: it loads the styles and the session, and renders the application.

import { render } from "preact";
import { App } from "./app";
import { loadSession } from "./session";
import "./styles/main.css";
import { applyTheme } from "./theme";

applyTheme();
void loadSession();
render(<App />, document.getElementById("app")!);

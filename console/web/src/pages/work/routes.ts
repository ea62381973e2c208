import type { PageRoute } from "../index";

export const workPages: PageRoute[] = [];

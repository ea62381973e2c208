// A component that renders again only when one of its properties is another value.

import { Component, h, type ComponentType, type FunctionComponent } from "preact";

export function memo<Props extends object>(Inner: FunctionComponent<Props>): ComponentType<Props> {
  return class Memo extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      const now = this.props as Record<string, unknown>;
      const then = next as Record<string, unknown>;
      for (const name in then) if (!Object.is(now[name], then[name])) return true;
      for (const name in now) if (!(name in then)) return true;
      return false;
    }
    override render() {
      return h(Inner as FunctionComponent<any>, this.props);
    }
  };
}

package consoletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// element says which element of a page is meant, as a screen reader would: by role and accessible name. It is
// looked for anew whenever it is used.
type element struct {
	v    *visitor
	role string
	name *regexp.Regexp
	in   *element // looked for inside of this one; nil: anywhere
}

// the returns the element with a role and an accessible name that matches a regular expression as a whole.
func (v *visitor) the(role, name string) *element {
	return &element{v: v, role: role, name: regexp.MustCompile("^(?:" + name + ")$")}
}

// the returns an element inside of this one.
func (e *element) the(role, name string) *element {
	inner := e.v.the(role, name)
	inner.in = e
	return inner
}

func (e *element) String() string {
	s := fmt.Sprintf("%s %q", e.role, strings.TrimSuffix(strings.TrimPrefix(e.name.String(), "^(?:"), ")$"))
	if e.in != nil {
		s += " in " + e.in.String()
	}
	return s
}

// objects is the group of the page's objects that the tests hold; it is released after each look.
const objects = "consoletest"

var errAbsent = errors.New("it is not there")

// all returns the nodes that match now and are not hidden from assistive technology.
func (e *element) all(ctx context.Context, tab *chromedp.Target) ([]cdp.BackendNodeID, error) {
	defer func() {
		_, _ = cdp.Call(ctx, tab, runtime.ReleaseObjectGroup, runtime.ReleaseObjectGroupParams{ObjectGroup: objects})
	}()
	var root runtime.RemoteObjectID
	if e.in != nil {
		node, err := e.in.node(ctx, tab)
		if err != nil {
			return nil, err
		}
		if root, err = resolve(ctx, tab, node); err != nil {
			return nil, err
		}
	} else {
		res, err := cdp.Call(ctx, tab, runtime.Evaluate, runtime.EvaluateParams{Expression: "document", ObjectGroup: objects})
		if err != nil {
			return nil, err
		}
		root = res.Result.ObjectID
	}
	found, err := cdp.Call(ctx, tab, accessibility.QueryAXTree, accessibility.QueryAXTreeParams{ObjectID: root, Role: e.role})
	if err != nil {
		return nil, err
	}
	var nodes []cdp.BackendNodeID
	for _, node := range found.Nodes {
		if node.Ignored || node.BackendDOMNodeID == 0 {
			continue
		}
		name := ""
		if node.Name != nil {
			if err := json.Unmarshal(node.Name.Value, &name); err != nil {
				return nil, err
			}
		}
		if e.name.MatchString(strings.Join(strings.Fields(name), " ")) {
			nodes = append(nodes, node.BackendDOMNodeID)
		}
	}
	return nodes, nil
}

func (e *element) node(ctx context.Context, tab *chromedp.Target) (cdp.BackendNodeID, error) {
	nodes, err := e.all(ctx, tab)
	if err == nil && len(nodes) == 0 {
		err = errAbsent
	}
	if err != nil {
		return 0, err
	}
	return nodes[0], nil
}

// resolve returns the JavaScript object of a node.
func resolve(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) (runtime.RemoteObjectID, error) {
	res, err := cdp.Call(ctx, tab, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: node, ObjectGroup: objects})
	if err != nil {
		return "", err
	}
	return res.Object.ObjectID, nil
}

// do waits until the element is there and act succeeds with it.
func (e *element) do(what string, act func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) error) {
	e.v.t.Helper()
	e.v.await(what+" "+e.String(), func(ctx context.Context) (bool, error) {
		return chromedp.Run(ctx, func(ctx context.Context, tab *chromedp.Target) (bool, error) {
			node, err := e.node(ctx, tab)
			if err != nil {
				return false, err
			}
			err = act(ctx, tab, node)
			return err == nil, err
		})
	})
}

// appears waits until the element is there.
func (e *element) appears() *element {
	e.v.t.Helper()
	e.do("see", func(context.Context, *chromedp.Target, cdp.BackendNodeID) error { return nil })
	return e
}

// goes waits until the element is not there.
func (e *element) goes() {
	e.v.t.Helper()
	e.v.await("no "+e.String(), func(ctx context.Context) (bool, error) {
		n, err := e.count(ctx)
		return n == 0, err
	})
}

// counts waits until there are n such elements.
func (e *element) counts(n int) {
	e.v.t.Helper()
	e.v.await(fmt.Sprintf("%d times %s", n, e), func(ctx context.Context) (bool, error) {
		got, err := e.count(ctx)
		return got == n, err
	})
}

func (e *element) count(ctx context.Context) (int, error) {
	return chromedp.Run(ctx, func(ctx context.Context, tab *chromedp.Target) (int, error) {
		nodes, err := e.all(ctx, tab)
		if errors.Is(err, errAbsent) { // of the one that it is in
			return 0, nil
		}
		return len(nodes), err
	})
}

// center returns the middle of a node, scrolled into view, if a click there meets the node.
func center(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) (x, y float64, err error) {
	if _, err := cdp.Call(ctx, tab, dom.ScrollIntoViewIfNeeded, dom.ScrollIntoViewIfNeededParams{BackendNodeID: node}); err != nil {
		return 0, 0, err
	}
	res, err := cdp.Call(ctx, tab, dom.GetContentQuads, dom.GetContentQuadsParams{BackendNodeID: node})
	switch {
	case err != nil:
		return 0, 0, err
	case len(res.Quads) == 0 || len(res.Quads[0]) != 8:
		return 0, 0, errors.New("it has no place on the page")
	}
	q := res.Quads[0]
	x, y = (q[0]+q[2]+q[4]+q[6])/4, (q[1]+q[3]+q[5]+q[7])/4
	met, err := on[bool](ctx, tab, node, fmt.Sprintf(`function () {
		const met = document.elementFromPoint(%v, %v);
		return !!met && (this.contains(met) || [...(this.labels ?? [])].some((l) => l.contains(met)));
	}`, x, y))
	if err == nil && !met {
		err = errors.New("something else is in front of it")
	}
	return x, y, err
}

// clicked notes whether the next click on the page meets the element, or one that has taken its place.
const clicked = `function () {
	window.testClick = false;
	addEventListener("click", (e) => {
		const met = e.target, same = met.closest("a, button, [role]")?.innerText;
		window.testClick = this.contains(met) || [...(this.labels ?? [])].some((l) => l.contains(met)) || !!same && same === this.innerText;
	}, { capture: true, once: true });
	return true;
}`

// click presses the mouse in the middle of the element. It tries again if the element was somewhere else by
// then: a page that has just been loaded moves things.
func (e *element) click() {
	e.v.t.Helper()
	e.do("click", func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) error {
		if disabled, err := on[bool](ctx, tab, node, `function () { return this.disabled === true || this.ariaDisabled === "true"; }`); err != nil || disabled {
			return errors.Join(err, errors.New("it is disabled"))
		}
		x, y, err := center(ctx, tab, node)
		if err != nil {
			return err
		}
		if _, err := on[bool](ctx, tab, node, clicked); err != nil {
			return err
		}
		if _, err = chromedp.MouseClickXY(x, y)(ctx, tab); err != nil {
			return err
		}
		// There is nothing to look at if the click has led to another page.
		if missed, err := chromedp.Evaluate[bool]("window.testClick === false")(ctx, tab); err == nil && missed {
			return errors.New("the click met something else")
		}
		return nil
	})
}

// dragTo drags the element onto another one.
func (e *element) dragTo(to *element) {
	e.v.t.Helper()
	e.do("drag to "+to.String(), func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) error {
		target, err := to.node(ctx, tab)
		if err != nil {
			return err
		}
		x2, y2, err := center(ctx, tab, target)
		if err != nil {
			return err
		}
		x1, y1, err := center(ctx, tab, node)
		if err != nil {
			return err
		}
		_, err = chromedp.DragAndDropXY(x1, y1, x2, y2)(ctx, tab)
		return err
	})
}

// fill replaces what is written in a field.
func (e *element) fill(text string) {
	e.v.t.Helper()
	e.do("fill", func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) error {
		if _, err := cdp.Call(ctx, tab, dom.Focus, dom.FocusParams{BackendNodeID: node}); err != nil {
			return err
		}
		if _, err := on[bool](ctx, tab, node, `function () { this.select(); return true; }`); err != nil {
			return err
		}
		if _, err := cdp.Call(ctx, tab, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
			return err
		}
		if got, err := on[string](ctx, tab, node, `function () { return this.value; }`); err != nil || got != text {
			return errors.Join(err, fmt.Errorf("it has %q", got))
		}
		return nil
	})
}

// choose picks an option of a select element by its text.
func (e *element) choose(option string) {
	e.v.t.Helper()
	e.do("choose "+option+" in", func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) error {
		ok, err := on[bool](ctx, tab, node, `function () {
			const option = [...this.options].find((o) => o.text.trim() === `+quoted(option)+`);
			if (!option) return false;
			this.value = option.value;
			this.dispatchEvent(new Event("input", {bubbles: true}));
			this.dispatchEvent(new Event("change", {bubbles: true}));
			return true;
		}`)
		if err == nil && !ok {
			err = errors.New("it has no such option")
		}
		return err
	})
}

// has waits until a field has this value.
func (e *element) has(value string) {
	e.v.t.Helper()
	e.do(fmt.Sprintf("see %q in", value), func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) error {
		got, err := on[string](ctx, tab, node, `function () { return String(this.value); }`)
		if err == nil && got != value {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

// text returns what the element shows.
func (e *element) text() (text string) {
	e.v.t.Helper()
	e.do("read", func(ctx context.Context, tab *chromedp.Target, node cdp.BackendNodeID) (err error) {
		text, err = on[string](ctx, tab, node, `function () { return this.value ?? this.innerText; }`)
		return err
	})
	return text
}

// hasFocus reports whether the element has the focus now.
func (e *element) hasFocus() chromedp.Action[bool] {
	return func(ctx context.Context, tab *chromedp.Target) (bool, error) {
		node, err := e.node(ctx, tab)
		if err != nil {
			return false, err
		}
		return on[bool](ctx, tab, node, `function () { return document.activeElement === this; }`)
	}
}

// focused waits until the element has the focus.
func (e *element) focused() {
	e.v.t.Helper()
	e.v.await("the focus is on "+e.String(), func(ctx context.Context) (bool, error) { return chromedp.Run(ctx, e.hasFocus()) })
}

// pick chooses an option of a field that opens a list which typing narrows.
func (e *element) pick(label, option string) {
	e.v.t.Helper()
	e.the("button", label+": .*").click()
	e.the("combobox", label).fill(option)
	e.the("option", option+".*").click()
	e.the("button", label+": "+option).appears()
}

// keys are the names of keys in press.
var keys = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "Up": kb.ArrowUp, "Down": kb.ArrowDown, "Left": kb.ArrowLeft, "Right": kb.ArrowRight,
	"Home": kb.Home, "End": kb.End, "Space": " ", "Backspace": kb.Backspace,
}

// press presses keys one after another: those of the map above, or the keys of characters. "Ctrl+", "Shift+"
// and "Alt+" hold another key meanwhile.
func (v *visitor) press(names ...string) {
	v.t.Helper()
	for _, name := range names {
		var modifiers []chromedp.Modifier
		key := name
		for prefix, modifier := range map[string]chromedp.Modifier{"Ctrl+": chromedp.ModifierCtrl, "Shift+": chromedp.ModifierShift, "Alt+": chromedp.ModifierAlt} {
			if rest, ok := strings.CutPrefix(key, prefix); ok {
				key, modifiers = rest, append(modifiers, modifier)
			}
		}
		if code, ok := keys[key]; ok {
			key = code
		}
		v.key(key, modifiers...)
	}
}

// key presses a key as a keyboard does: a page that handles the press keeps its character from coming.
func (v *visitor) key(key string, modifiers ...chromedp.Modifier) {
	v.t.Helper()
	for _, r := range key {
		var text string
		var down, up input.DispatchKeyEventParams
		for _, event := range kb.Encode(r) {
			chromedp.KeyModifiers(modifiers...)(event)
			switch event.Type {
			case kb.KeyChar:
				text = event.Text
			case kb.KeyDown:
				down = *event
			default:
				up = *event
			}
		}
		down.Type = input.DispatchKeyEventTypeRawKeyDown
		if text != "" && down.Modifiers&^int64(chromedp.ModifierShift) == 0 {
			down.Type, down.Text = input.DispatchKeyEventTypeKeyDown, text
		}
		err := chromedp.Do(v.ctx, chromedp.Func(func(ctx context.Context, tab *chromedp.Target) error {
			if _, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, down); err != nil {
				return err
			}
			_, err := cdp.Call(ctx, tab, input.DispatchKeyEvent, up)
			return err
		}))
		if err != nil {
			v.stop("press %q: %v", key, err)
		}
	}
}

// types writes a text where the focus is.
func (v *visitor) types(text string) {
	v.t.Helper()
	v.key(text)
}

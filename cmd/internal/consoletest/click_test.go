package consoletest

import "testing"

// TestElement_ClickOfWhatMoves: a click whose press meets a button and whose release meets what is behind it
// acts on nothing, although the browser tells the element around both of a click. It is made again.
func TestElement_ClickOfWhatMoves(t *testing.T) {
	t.Parallel()
	ctx := limited(t)
	s := onboarded(ctx, t)
	v := signedIn(ctx, t, s, s.token)
	v.holds("there is a button", `(() => {
		const box = document.createElement("div"), above = document.createElement("div"), button = document.createElement("button");
		box.style.cssText = "position: fixed; inset: 0; z-index: 9; background: white";
		button.textContent = "Moves once";
		addEventListener("mousedown", () => { above.style.height = "200px"; }, { capture: true, once: true });
		button.addEventListener("click", () => { button.textContent = "Was clicked"; });
		box.append(above, button);
		document.body.append(box);
		return true;
	})()`)
	v.the("button", "Moves once").click()
	v.the("button", "Was clicked").appears()
}

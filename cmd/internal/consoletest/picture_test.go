package consoletest

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// Where golden pictures are: those of docs/console.md, and the others.
const (
	docsPictures  = "../../../docs/console"
	otherPictures = "testdata/pictures"
)

// A picture is compared in squares of this many pixels. A square differs if its mean color is further away
// than differs, of 255, and a picture if more than one square in maxShare does. So other fonts, times and ids
// pass, and a page that is broken or without its style does not.
const (
	square   = 20
	differs  = 28
	maxShare = 12
)

// picture compares the page with a golden picture, which -update writes anew. folder is docsPictures or
// otherPictures.
func (v *visitor) picture(folder, name string) {
	v.t.Helper()
	// The mouse may hover over something.
	if err := chromedp.Do(v.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 0, 0)); err != nil {
		v.stop("move the mouse away: %v", err)
	}
	v.steady()
	raw, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		v.stop("take the picture %s: %v", name, err)
	}
	got, err := decoded(raw)
	if err != nil {
		v.t.Fatal(err)
	}
	file := filepath.Join(folder, name+".png")
	if *update {
		if err := writePicture(file, got); err != nil {
			v.t.Fatal(err)
		}
		return
	}
	want, err := readPicture(file)
	if err != nil {
		v.t.Errorf("%v; -update writes it", err)
		return
	}
	if why := compare(got, want); why != "" {
		kept := filepath.Join(os.TempDir(), "switchyard-"+name+"-got.png")
		err := os.WriteFile(kept, raw, 0o600)
		v.t.Errorf("%s: %s; the page is in %s; -update writes the picture anew (%v)", file, why, kept, err)
	}
}

// steady makes what differs between two runs the same for a picture: times, secrets, the text cursor, and
// messages that go away by themselves.
func (v *visitor) steady() {
	v.t.Helper()
	eval[bool](v, `(async () => {
		document.documentElement.style.caretColor = "transparent";
		for (const dismiss of document.querySelectorAll(".toasts [aria-label=Dismiss]")) dismiss.click();
		for (const secret of document.querySelectorAll("input.mono[readonly]")) secret.style.webkitTextSecurity = "disc";
		for (const time of document.querySelectorAll("time")) if (time.firstChild) time.firstChild.data = "now";
		await document.fonts.ready;
		await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
		return true;
	})()`)
}

// compare says why two pictures differ; empty: they don't.
func compare(got, want *image.RGBA) string {
	if got.Bounds() != want.Bounds() {
		return fmt.Sprintf("it is %v, and was %v", got.Bounds(), want.Bounds())
	}
	all, other := 0, 0
	b := got.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y += square {
		for x := b.Min.X; x < b.Max.X; x += square {
			all++
			at := image.Rect(x, y, x+square, y+square).Intersect(b)
			g, w := mean(got, at), mean(want, at)
			for i := range g {
				if g[i]-w[i] > differs || w[i]-g[i] > differs {
					other++
					break
				}
			}
		}
	}
	if other*maxShare > all {
		return fmt.Sprintf("%d of %d squares differ", other, all)
	}
	return ""
}

// mean returns the mean color of a part of a picture.
func mean(p *image.RGBA, at image.Rectangle) [3]int {
	var sum [3]int
	for y := at.Min.Y; y < at.Max.Y; y++ {
		for x := at.Min.X; x < at.Max.X; x++ {
			c := p.RGBAAt(x, y)
			sum[0], sum[1], sum[2] = sum[0]+int(c.R), sum[1]+int(c.G), sum[2]+int(c.B)
		}
	}
	n := at.Dx() * at.Dy()
	return [3]int{sum[0] / n, sum[1] / n, sum[2] / n}
}

// decoded reads a PNG.
func decoded(raw []byte) (*image.RGBA, error) {
	p, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read a picture: %w", err)
	}
	plain := image.NewRGBA(p.Bounds())
	draw.Draw(plain, p.Bounds(), p, p.Bounds().Min, draw.Src)
	return plain, nil
}

func readPicture(file string) (*image.RGBA, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no golden picture %s", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read a golden picture: %w", err)
	}
	p, err := decoded(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// writePicture writes a picture with its 256 commonest colors, which makes a third of the file.
func writePicture(file string, p *image.RGBA) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("write a golden picture: %w", err)
	}
	small := image.NewPaletted(p.Bounds(), commonest(p))
	draw.Draw(small, p.Bounds(), p, p.Bounds().Min, draw.Src)
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write a golden picture: %w", err)
	}
	return nil
}

// commonest returns the palette of a picture: its commonest colors, of those that differ in the upper five
// bits the first one.
func commonest(p *image.RGBA) color.Palette {
	count := map[color.RGBA]int{}
	b := p.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[p.RGBAAt(x, y)]++
		}
	}
	all := make([]color.RGBA, 0, len(count))
	for c := range count {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b color.RGBA) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	const exact = 64 // the colors of surfaces, which are kept as they are
	palette := color.Palette{}
	coarse := map[color.RGBA]bool{}
	for i, c := range all {
		key := color.RGBA{c.R >> 3, c.G >> 3, c.B >> 3, 0}
		if len(palette) == 256 {
			break
		}
		if i < exact || !coarse[key] {
			palette = append(palette, c)
			coarse[key] = true
		}
	}
	return palette
}

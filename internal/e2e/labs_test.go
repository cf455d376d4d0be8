package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/shop/internal/platform/testbed/testbedtest"
	"example.com/shop/internal/show/lab"
)

// Every lab shows its effect, and its cure works. A machine that is too busy may make a run inconclusive, which is tried once more.
// A run that takes 30 s is inconclusive. At full size the labs run one by one while other tests wait, and their times add up to four minutes at
// most.
func TestLabsShowTheirEffects(t *testing.T) {
	full := testbedtest.Size(0, 1) == 1
	if full {
		alone(t)
	}
	var took atomic.Int64
	t.Cleanup(func() {
		if all := time.Duration(took.Load()); full && all > 4*time.Minute { // other tests would count
			t.Errorf("the times of all labs add up to %v, want at most 4m", all)
		}
	})
	free := make(chan struct{}, testbedtest.Size(3, 1))
	for _, l := range lab.All() {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			free <- struct{}{}
			began := time.Now()
			defer func() {
				took.Add(int64(time.Since(began)))
				<-free
			}()
			code, r := runLab(t, noEnv, l.Name)
			if r.Verdict == lab.Inconclusive {
				t.Logf("inconclusive, and run once more: %s", r.Reason)
				code, r = runLab(t, noEnv, l.Name)
			}
			if code != 0 || r.Verdict != lab.Shown || r.Number != l.Number || r.Name != l.Name {
				t.Errorf("lab %d, %s: exit code %d, %s, want shown: %s", r.Number, r.Name, code, r.Verdict, r.Reason)
			}
			for _, f := range append(r.Effects, r.Cures...) {
				if !f.OK {
					t.Error("not so: " + f.Text)
				}
			}
			if len(r.Steps) == 0 || len(r.Measured) == 0 || len(r.Effects) == 0 || len(r.Cures) == 0 || r.Picture == nil {
				t.Errorf("%d steps, %d figures, %d effects, %d cures, picture %v; want some of each",
					len(r.Steps), len(r.Measured), len(r.Effects), len(r.Cures), r.Picture)
			}
		})
	}
}

// Without servers, a lab is inconclusive if it needs one. The other labs still show their effects, which takes a minute.
func TestLabsNeedTheServersThatTheyList(t *testing.T) {
	t.Parallel()
	for _, l := range lab.All() {
		if len(l.Needs) == 0 && testbedtest.Size(0, 1) == 0 {
			continue
		}
		code, r := runLab(t, map[string]string{"SHOP_TEST_REQUIRE": "0"}, l.Name)
		named := slices.ContainsFunc(l.Needs, func(server string) bool { return strings.HasPrefix(r.Reason, server+": ") })
		if len(l.Needs) == 0 && code != 0 || len(l.Needs) > 0 && (code != 3 || r.Verdict != lab.Inconclusive || !named) {
			t.Errorf("%s needs %q: exit code %d, %s: %s", l.Name, l.Needs, code, r.Verdict, r.Reason)
		}
	}
}

// runLab runs a lab, and returns its exit code and result. The lab is small, unless SHOP_TEST_SOAK=1 asks for the full size.
func runLab(t *testing.T, env map[string]string, name string) (code int, r lab.Result) {
	t.Helper()
	args := []string{"lab", "run", name, "--json", "--small"}
	code, out, stderr := call(t, env, args[:testbedtest.Size(5, 4)]...)
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		t.Fatalf("exit code %d: %v\n%s%s", code, err, out, stderr)
	}
	if rest := strings.TrimSpace(out[d.InputOffset():]); rest != "" {
		t.Errorf("more than one result: %q", rest)
	}
	return code, r
}

func TestLabListNamesAllLabs(t *testing.T) {
	t.Parallel()
	out := shows(t, []string{"lab", "list"})
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != len(lab.All()) {
		t.Fatalf("%d lines for %d labs:\n%s", len(lines), len(lab.All()), out)
	}
	for i, l := range lab.All() {
		last := l.Question
		if len(l.Needs) > 0 {
			last += " (needs " + strings.Join(l.Needs, ", ") + ")"
		}
		if f := strings.Fields(lines[i]); len(f) < 3 || f[0] != fmt.Sprint(l.Number) || f[1] != l.Name || !strings.HasSuffix(lines[i], "  "+last) {
			t.Errorf("line %q; want %d, %s and %q", lines[i], l.Number, l.Name, last)
		}
	}
	var listed []lab.Lab
	if err := json.NewDecoder(bytes.NewBufferString(shows(t, []string{"lab", "list", "--json"}))).Decode(&listed); err != nil || len(listed) != len(lab.All()) {
		t.Errorf("as JSON: %d labs, %v; want %d", len(listed), err, len(lab.All()))
	}
}

// In the control room a person runs a lab, and sees 100 orders that nobody pays expire, none of them early.
func TestControlRoomRunsLabsAndExpiresOrders(t *testing.T) {
	t.Parallel()
	page := browser(t, room(t, program, "--database", testbedtest.Database(t), "--redis", ownRedis(t)))
	value := func(expression string) string {
		return evaluate[string](page, t, "String("+expression+")")
	}
	testbedtest.Eventually(t, "the labs are listed", func() bool { return value("document.querySelectorAll('#labs option').length > 1") == "true" })
	evaluate[bool](page, t, `(() => {
		const select = document.querySelector('#labs select');
		select.value = 'lost-update';
		select.dispatchEvent(new Event('change', {bubbles: true}));
		return true;
	})()`)
	testbedtest.Eventually(t, "the lab can be started", func() bool { return value("document.querySelector('[data-action=lab]').disabled") == "false" })
	evaluate[bool](page, t, "document.querySelector('[data-action=lab]').click() ?? true")
	testbedtest.Eventually(t, "the lab has a verdict", func() bool {
		return value("document.querySelector('#labs [data-verdict]')?.dataset.verdict") != "undefined"
	})
	if got := value("document.querySelector('#labs [data-verdict]').dataset.verdict"); got != "shown" {
		t.Errorf("the verdict is %q: %s", got, value("document.querySelector('#labs').innerText"))
	}
	if value("document.querySelector('#labs .picture svg').getBoundingClientRect().width > 300") != "true" {
		t.Error("the lab has no picture")
	}
	walkThroughLab(page, t)

	evaluate[bool](page, t, "document.querySelector('[data-action=unpaid]').click() ?? true")
	counts := "[...document.querySelectorAll('#delays tr')].map((r) => Number(r.cells[2].innerText)).reduce((a, b) => a + b, 0)"
	testbedtest.Eventually(t, "100 orders have expired", func() bool { return value(counts) == "100" })
	expires := "document.querySelector('[data-order] p').innerText"
	evaluate[bool](page, t, "document.querySelector('#orders tbody button.link').click() ?? true")
	testbedtest.Eventually(t, "an order that has expired is explained", func() bool {
		return value("/^EXPIRED: it was not paid until .* Its units were released \\d+ ms later/.test("+expires+")") == "true"
	})
	if value("document.querySelector('#delays .bad')?.innerText ?? 'none'") != "none" {
		t.Errorf("orders expired early: %s", value("document.querySelector('#delays').innerText"))
	}
	testbedtest.Eventually(t, "each instance shows its permits", func() bool {
		return value("[...document.querySelectorAll('#machines [data-name]')].filter((e) => /64/.test(e.innerText)).length") == "3"
	})
}

// shownOfLab is what the page shows at one position of a lab's run.
type shownOfLab struct {
	Position int    `json:"position"`
	Status   string `json:"status"`
	Current  string `json:"current"`  // the step that is highlighted
	Steps    int    `json:"steps"`    // in view
	All      int    `json:"all"`      // steps of the run
	Marks    int    `json:"marks"`    // of the picture, in view
	AllMarks int    `json:"allMarks"` // of the picture
	Verdict  bool   `json:"verdict"`
	Question string `json:"question"`
	Expect   string `json:"expect"`
	Why      string `json:"why"` // and the cure, with the verdict
}

const readLab = `(() => {
	const lab = document.querySelector('#labs'), steps = [...lab.querySelectorAll('.steps li')], marks = [...lab.querySelectorAll('.picture g:has(circle)')];
	const seen = (all) => all.filter((e) => getComputedStyle(e).visibility === 'visible').length;
	return {position: Number(lab.querySelector('[data-position]').dataset.position), status: lab.querySelector('[data-position]').innerText,
		current: lab.querySelector('[aria-current=step]')?.innerText ?? '', steps: seen(steps), all: steps.length, marks: seen(marks), allMarks: marks.length,
		verdict: !!lab.querySelector('[data-verdict]'), question: lab.querySelector('.question').innerText, expect: lab.querySelector('.expect').innerText,
		why: [...lab.querySelectorAll('.why')].map((e) => e.innerText).join('\n')};
})()`

var englishWord = regexp.MustCompile(`[A-Za-z]{3,}`)

// saysInChinese wants at least so many steps, findings and texts of the picture, all of them in Chinese. On a busy machine, one names --small.
func saysInChinese(page context.Context, t *testing.T, least int) {
	t.Helper()
	said := evaluate[[]string](page, t, "[...document.querySelectorAll('#labs .steps li, #labs .findings li, #labs .picture text')].map((e) => e.textContent)")
	for _, text := range said {
		for _, word := range englishWord.FindAllString(text, -1) {
			if !slices.Contains([]string{"naive", "conditional", "optimistic", "SQLite", "MariaDB", "Redis", "small"}, word) {
				t.Errorf("in Chinese, the lab says %q in %q", word, text)
			}
		}
	}
	if len(said) < least {
		t.Errorf("in Chinese, the lab has %d texts, want at least %d", len(said), least)
	}
}

// walkThroughLab goes from the question through each step to the verdict, by button and by key, and back. At each step, the page shows
// what has happened so far and nothing else.
func walkThroughLab(page context.Context, t *testing.T) {
	t.Helper()
	read := func() shownOfLab { return evaluate[shownOfLab](page, t, readLab) }
	at := func(position int) (s shownOfLab) {
		t.Helper()
		testbedtest.Eventually(t, fmt.Sprintf("position %d of the lab", position), func() bool {
			s = read()
			return s.Position == position && (position == 0 || position > s.All || s.Current != "")
		})
		return s
	}
	press := func(key string) {
		if err := chromedp.Do(page, chromedp.KeyEvent(key)); err != nil {
			t.Fatal(err)
		}
	}
	click := func(name string) {
		evaluate[bool](page, t, "document.querySelector('[data-walk="+name+"]').click() ?? true")
	}

	whole := read()
	if !whole.Verdict || whole.Steps != whole.All || whole.Marks != whole.AllMarks || whole.All < 4 || whole.AllMarks < 4 {
		t.Fatalf("after the run, the page shows %+v, want all steps and marks, and the verdict", whole)
	}
	click("fromStart")
	if s := at(0); s.Status != "Question" || s.Question == "" || s.Expect == "" || s.Steps != 0 || s.Marks != 0 || s.Verdict {
		t.Errorf("at the question: %+v, want neither steps nor marks nor a verdict", s)
	}
	marks := 0
	for i := 1; i <= whole.All; i++ {
		if i%2 == 1 {
			click("next")
		} else {
			press(kb.ArrowRight)
		}
		s := at(i)
		if !strings.HasPrefix(s.Status, fmt.Sprintf("Step %d of %d: ", i, whole.All)) || s.Steps != i || s.Verdict || s.Marks < marks {
			t.Errorf("at step %d: %+v, want %d steps, at least %d marks and no verdict", i, s, i, marks)
		}
		if _, text, _ := strings.Cut(s.Status, ": "); !strings.HasSuffix(s.Current, text) {
			t.Errorf("step %d: %q is highlighted, and %q is announced", i, s.Current, s.Status)
		}
		if i == 1 && s.Marks > 1 {
			t.Errorf("at the first step, the picture has %d of %d marks", s.Marks, s.AllMarks)
		}
		marks = s.Marks
	}
	press(kb.ArrowRight)
	if s := at(whole.All + 1); s != whole {
		t.Errorf("at the verdict: %+v, want %+v", s, whole)
	}
	press(kb.ArrowRight) // there is nothing after the verdict
	press(kb.ArrowLeft)
	if s := at(whole.All); s.Verdict {
		t.Error("the verdict is shown before the last step is left")
	}
	evaluate[bool](page, t, "document.querySelector('header button[lang]').click() ?? true")
	testbedtest.Eventually(t, "the lab is shown in Chinese", func() bool {
		s := read()
		return strings.HasPrefix(s.Status, fmt.Sprintf("第 %d 步，共 %d 步", whole.All, whole.All)) && strings.Contains(s.Question, "两个进程卖最后一件") && strings.HasPrefix(s.Expect, "预期")
	})
	press(kb.ArrowRight)
	at(whole.All + 1)
	saysInChinese(page, t, whole.All+whole.AllMarks)
	l, err := lab.Find("lost-update")
	if s := at(whole.All + 1); err != nil || s.Why != l.Chinese().Why+"\n"+l.Chinese().Cure {
		t.Errorf("in Chinese, cause and cure are %q, %v", s.Why, err)
	}
	accessible(page, t, "a lab, step by step")
	evaluate[bool](page, t, "document.querySelector('header button[lang]').click() ?? true")
}

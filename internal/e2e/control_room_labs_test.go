package e2e_test

import (
	"testing"

	"example.com/shop/internal/testbed/testbedtest"
)

// In the control room a person runs a lab, and sees 100 orders that nobody pays expire, none of them early.
func TestControlRoomRunsLabsAndExpiresOrders(t *testing.T) {
	t.Parallel()
	page := browser(t, room(t, "--database", testbedtest.Database(t), "--redis", ownRedis(t)))
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

	evaluate[bool](page, t, "document.querySelector('[data-action=unpaid]').click() ?? true")
	counts := "[...document.querySelectorAll('#delays tr')].map((r) => Number(r.cells[2].innerText)).reduce((a, b) => a + b, 0)"
	testbedtest.Eventually(t, "100 orders have expired", func() bool { return value(counts) == "100" })
	if value("document.querySelector('#delays .bad')?.innerText ?? 'none'") != "none" {
		t.Errorf("orders expired early: %s", value("document.querySelector('#delays').innerText"))
	}
	testbedtest.Eventually(t, "each instance shows its permits", func() bool {
		return value("[...document.querySelectorAll('#machines [data-name]')].filter((e) => /64/.test(e.innerText)).length") == "3"
	})
}

package perduretest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/perduretest"
)

// losing is the variable that has this test binary run what must fail.
const losing = "PERDURE_TEST_LOSES_A_CALL"

// A call on a goroutine that outlives its orchestration fails the test, whenever it is made. The test that must fail is one in a process of
// its own.
func TestACallThatIsLostFailsTheTest(t *testing.T) {
	t.Parallel()
	if os.Getenv(losing) != "" {
		loseACall(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), losing+"=yes")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "what it asked for is lost") || !strings.Contains(string(out), "loseACall") {
		t.Errorf("%v\n%s", err, out)
	}
}

func loseACall(t *testing.T) {
	t.Helper()
	r := perdure.NewRegistry()
	perdure.AddActivity(r, "mail", func(context.Context, int) (int, error) { return 0, nil })
	perdure.AddOrchestration(r, "order", func(ctx *perdure.OrchestrationContext, n int) (int, error) {
		go func() {
			time.Sleep(time.Minute) // what it asks somebody
			perdure.CallActivityByName[int](ctx, "mail", n)
		}()
		return n, nil
	})
	env := perduretest.New(t, r)
	id, err := env.Client().Start(t.Context(), "order", 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = env.Client().Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	env.Advance(2 * time.Minute)
}

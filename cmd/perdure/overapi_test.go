package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/admin"
	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/cli"
	"github.com/perdure/perdure/httpapi"
)

// overAPI is the test whose subtests run commands over the HTTP API.
const overAPI = "TestCommands_overAPI"

// isOverAPI reports whether the commands of a test run over the HTTP API.
func isOverAPI(t *testing.T) bool {
	t.Helper()
	name := t.Name()
	return strings.HasPrefix(name, overAPI+"/") || strings.HasSuffix(name, strings.ReplaceAll(cliOverAPI, " ", "_"))
}

// inMemory is a transport that calls a handler.
type inMemory struct{ http.Handler }

// RoundTrip implements http.RoundTripper.
func (m inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	r = r.Clone(r.Context())
	r.RequestURI = r.URL.RequestURI()
	m.ServeHTTP(w, r)
	return w.Result(), nil
}

// dialed returns clients of the HTTP API of a hub.
func dialed(t *testing.T, hub cli.Hub, clock func() time.Time) cli.Hub {
	t.Helper()
	served := httpapi.New(hub.Client, hub.Admin, httpapi.WithLogger(slog.New(slog.DiscardHandler)),
		httpapi.WithClock(clock))
	noDelay := func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	opts := []client.DialOption{
		client.WithHTTPClient(&http.Client{Transport: inMemory{served}}), client.WithClock(clock),
		client.WithSleep(noDelay),
	}
	const endpoint = "http://127.0.0.1"
	cl, err := client.Dial(endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	a, err := admin.Dial(endpoint, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return cli.Hub{Client: cl, Admin: a}
}

// differsOverAPI has the tests that the HTTP API cannot pass, with the reason.
var differsOverAPI = map[string]string{
	"TestHistory_runningInstance_printsEvents":                "the API returns JSON without insignificant spaces",
	"TestHistory_endedInstance_printsEvents":                  "the API returns JSON without insignificant spaces",
	"TestHistoryAndWhy_corruptHistory_errorNamesFix":          "the API does not reveal stored keys",
	"TestStatus_damagedHistory_isStillPrinted":                "the API does not reveal stored keys",
	"TestRaise_hubHasPayloadStore_acceptsLargeData":           "client.Dial limits inputs to perdure.MaxPayloadBytes",
	"TestScheduleCommands_runningSchedules_showAndChangeThem": "the clock of the command differs from the test kit's",
}

// The commands print the same over the HTTP API.
func TestCommands_overAPI(t *testing.T) {
	t.Parallel()
	for _, test := range []func(*testing.T){
		TestAnnotate_note_isShownByStatusAndHistory,
		TestBulkCommands_filter_createJobOnlyIfConfirmed,
		TestBulkCommands_instanceStartsDuringPrompt_isNotSelected,
		TestCompletion_idsAndStatuses_areSuggested,
		TestCommands_examples_areValid,
		TestCost_severalExecutions_includesAll,
		TestDeadLetters_severalQueues_areListedShownRedrivenAndDropped,
		TestDeadLetters_invalidSelection_isAnError,
		TestDeadLetters_moreThanLimit_listPrintsCount,
		TestCallAndState_entity_printResultAndState,
		TestExecutions_limitAndCursor_printsPages,
		TestHistory_pastExecution_isPrinted,
		TestHistory_json_containsAllExecutions,
		TestHistory_jsonOfContinuedInstance_isReplayedByTestKit,
		TestHistory_runningInstance_printsEvents,
		TestHistory_inlineActivity_isMarked,
		TestHistory_versionMarked_printsChangeAndVersion,
		TestHistory_endedInstance_printsEvents,
		TestHistory_json_hasDocumentFormat,
		TestHistoryAndStatus_timerWithName_printName,
		TestHistory_parkedInputsAndChildren_nameTheirInstances,
		TestStatus_pendingTasks_arePrinted,
		TestStatus_damagedHistory_isStillPrinted,
		TestStatus_queueHasNoWorker_isReported,
		TestPurge_runningInstance_requiresForce,
		TestPurge_withChildren_deletesChildren,
		TestHistoryAndWhy_instanceIsBeingPurged_suggestPurge,
		TestHistoryAndWhy_corruptHistory_errorNamesFix,
		TestQuery_printsResult,
		TestRestart_endedInstance_printsNewID,
		TestRestart_fromEvent_isNamedInErrorAndHistory,
		TestScheduleCommands_runningSchedules_showAndChangeThem,
		TestScheduleShow_beforeFirstTurn_reportsUnknownDefinition,
		TestScheduleShow_pausedInstance_showsCallerAndReason,
		TestScheduleShow_blockedRun_showsItsStatus,
		TestScheduleCommands_invalidArguments_areErrors,
		TestComplete_token_sendsResult,
		TestFail_token_sendsError,
		TestHeartbeat_cancelledActivity_printsCancellation,
		TestTokenCommands_invalidToken_isAnError,
		TestUpdate_printsResult,
		TestUpdate_encodedResult_isDescribed,
		TestStart_printsID,
		TestStart_inputOfFlagFileOrStdin_isRecorded,
		TestStart_delay_isShownByStatus,
		TestStart_sameIdempotencyKey_printsSameID,
		TestStart_ifExists_ignoresOrReplaces,
		TestStart_withEvent_startsOrRaises,
		TestStart_withUpdate_startsOrUpdates,
		TestRaiseAndTerminate_sendMessages,
		TestCancel_instanceOrActivity_sendsRequest,
		TestPauseAndResume_instance_sendRequests,
		TestCommands_cancelledInstance_showReason,
		TestStatus_terminatedWithoutMessage_printsFailure,
		TestRaiseTerminateCancel_invalidArguments_sendNothing,
		TestStart_inputIsTooLarge_isAnError,
		TestRaise_hubHasPayloadStore_acceptsLargeData,
		TestWait_instanceEnds_returnsExitCodeOfStatus,
		TestWait_instanceDoesNotEnd_timesOut,
		TestWait_started_endsWithFirstTurn,
		TestWait_interrupted_namesCommandToRepeat,
		TestStart_wait_returnsExitCodeOfStatus,
		TestStatus_failedInstance_printsCauses,
		TestList_filtersAndCursor_selectInstances,
		TestList_statusInAnyCase_selects,
		TestList_parents_areShownIfTableFits,
		TestList_count_printsNumber,
		TestVersions_endedInstances_areNotCounted,
		TestVersions_moreThanOnePage_countsAll,
		TestVersions_changes_countsRecordedVersions,
		TestVersions_historyIsNotCounted_isAnError,
		TestStatus_waitForCancellation_isPendingUntilEnd,
		TestWhyAndHistory_waitForCancellation_printOutcome,
		TestStatusWhyAndHistory_callers_arePrinted,
		TestWhy_allOutcomes_arePrinted,
		TestWhy_noCancellations_printsFailure,
		TestWhy_pastExecution_printsItsCancellations,
		TestPause_mappingToAlias_printsFunctionName,
		TestResume_pausedHub_restoresMappings,
		TestPause_mappingNeverSettles_timesOut,
		TestResume_diedAfterLastMapping_mappingDisabledLaterStaysDisabled,
		TestResume_diedWhileWaiting_mappingDisabledLaterStaysDisabled,
		TestResume_mappingsAreBeingEnabled_waitsForThem,
		TestResume_mappingsWereReplaced_isAnError,
		TestPauseAndResume_concurrent_loseNoMapping,
		TestPause_mappingInUse_retriesOncePerSecond,
		TestPause_manyMappings_waitsConcurrently,
	} {
		full := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
		name := full[strings.LastIndex(full, ".")+1:]
		if differsOverAPI[name] == "" {
			t.Run(name, test)
		}
	}
}

func TestAPI_flagsAndEnvironment_selectTransport(t *testing.T) {
	t.Parallel()
	const fromEnv, fromFlag = "https://env.example.com", "https://flag.example.com"
	for _, tt := range []struct {
		want      string
		env, args []string
	}{
		{want: fromEnv, env: []string{client.EndpointVariable, fromEnv}},
		{want: fromEnv, env: []string{client.EndpointVariable, fromEnv, "PERDURE_HUB", "staging"}},
		{want: fromFlag, env: []string{client.EndpointVariable, fromEnv}, args: []string{"--api", fromFlag}},
		{want: "mine", env: []string{client.EndpointVariable, fromEnv}, args: []string{"--hub", "mine"}},
		{want: "default", env: []string{client.EndpointVariable, fromEnv}, args: []string{"--api", ""}},
	} {
		h := setup(t)
		for i := 0; i < len(tt.env); i += 2 {
			h.env[tt.env[i]] = tt.env[i+1]
		}
		if h.mustRun(append([]string{"list"}, tt.args...)...); h.openedHub != tt.want {
			t.Errorf("%v %v: opened %q, want %q", tt.env, tt.args, h.openedHub, tt.want)
		}
	}
	h := setup(t)
	h.wantError(cli.CodeError, "--hub and --api cannot be combined", "list", "--hub", "mine", "--api", fromFlag)
	h.wantError(cli.CodeError, `not found in the hub of API "`+fromFlag+`"`, "status", "none", "--api", fromFlag)
	if h.openedHub != fromFlag {
		t.Errorf("opened %q", h.openedHub)
	}
}

// directOnly has a call of each command that needs direct access.
var directOnly = map[string][]string{
	"reconcile": {"--yes"}, "sweep": nil, "doctor": nil, "verify": {"--binary", "x"}, "dev": nil, "worker": nil,
	"pause": {"--yes"}, "resume": nil, "deploy": {"--yes"}, "keys": nil, "keys add": nil,
	"keys remove": {"1", "--yes"},
}

func TestAPI_commandNeedsDirectAccess_failsWithReasonAndFix(t *testing.T) {
	t.Parallel()
	for command, args := range directOnly {
		h := setup(t)
		h.env[client.EndpointVariable] = "https://env.example.com"
		h.wantError(cli.CodeError, "perdure "+command+" is not available over the HTTP API: ",
			append(strings.Fields(command), args...)...)
		if text := h.err.String(); !strings.Contains(text, "set --hub") || h.openedHub != "" {
			t.Errorf("%s: %q, opened %q", command, text, h.openedHub)
		}
	}
}

// Each command either has an operation with a route, or a reason why it does not use the API.
func TestAPI_everyCommand_worksOrHasAReason(t *testing.T) {
	t.Parallel()
	without := map[string]string{
		"version": "this program", "init": "writes source code", "vet": "checks source code",
		"import": "converts a history", "template": "prints a template", "selftest": "creates a hub", "help": "shell", "completion": "shell",
	}
	served := map[string]bool{"versions": true, "ui": true, "mcp": true, "whoami": true} // they use other operations
	for _, o := range api.Operations() {
		for _, name := range o.Command.Names {
			served[name] = served[name] || o.Path != ""
		}
	}
	for _, cmd := range commandsBelow(rootOf()) {
		name := strings.TrimPrefix(cmd.CommandPath(), "perdure ")
		_, direct := directOnly[name]
		n := 0
		for _, is := range []bool{served[name], direct && !served[name], without[name] != ""} {
			if is {
				n++
			}
		}
		if n != 1 && !cmd.HasSubCommands() {
			t.Errorf("perdure %s: served %v, direct %v, without a hub %q", name, served[name], direct, without[name])
		}
	}
}

func TestAuthorizationOf_endpoint_followsHostAndToken(t *testing.T) {
	t.Parallel()
	const gateway = "https://a1b2.execute-api.eu-west-1.amazonaws.com"
	for _, tt := range []struct {
		endpoint, token string
		want            cli.Authorization
	}{
		{gateway, "", cli.AuthorizationIAM},
		{"https://abc.lambda-url.eu-west-1.on.aws", "", cli.AuthorizationIAM},
		{"https://api.example.com", "", cli.AuthorizationIAM},
		{gateway, "t", cli.AuthorizationToken},
		{"http://127.0.0.1:8080", "", cli.AuthorizationNone},
		{"http://localhost:8080", "t", cli.AuthorizationToken},
		{"http://api.internal", "", cli.AuthorizationNone},
		{"http://api.internal", "t", ""},
		{"http://a1b2.execute-api.eu-west-1.amazonaws.com", "", ""},
		{"ftp://a", "", ""},
	} {
		env := &cli.Env{Getenv: func(name string) string {
			if name == cli.TokenVariable {
				return tt.token
			}
			return ""
		}}
		got, err := env.Authorizer().Of(tt.endpoint)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s with token %q: %q, %v, want %q", tt.endpoint, tt.token, got, err, tt.want)
		}
	}
}

func TestToken_command_isCachedForAMinuteAndChecked(t *testing.T) {
	t.Parallel()
	runs := filepath.Join(t.TempDir(), "runs")
	now := began
	env := &cli.Env{Stderr: io.Discard, Now: func() time.Time { return now }, Getenv: func(name string) string {
		if name == "PERDURE_API_TOKEN_COMMAND" {
			return "echo >> " + runs + "; wc -l < " + runs + " | tr -d ' '"
		}
		return ""
	}}
	source := env.Authorizer().Token()
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{0, "1"}, {59 * time.Second, "1"}, {2 * time.Second, "2"}} {
		now = now.Add(tt.after)
		if got, err := source(t.Context()); got != tt.want || err != nil {
			t.Errorf("token %q, %v, want %q", got, err, tt.want)
		}
	}
	env.Getenv = func(name string) string {
		if name == cli.TokenVariable {
			return "secret\nX-Header: 1"
		}
		return ""
	}
	if _, err := env.Authorizer().Token()(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a token with a line feed: %v", err)
	}
}

// A response of the API means that the call is allowed. The API rejects all requests that are no reads.
func TestWhoAmI_overAPI_reportsOperations(t *testing.T) {
	t.Parallel()
	h := setup(t)
	served := httpapi.New(client.New(h.Provider), admin.New(h.Provider),
		httpapi.WithLogger(slog.New(slog.DiscardHandler)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/v1/jobs") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"message":"Forbidden"}`)
			return
		}
		answer := httptest.NewRecorder()
		served.ServeHTTP(answer, r)
		if r.Method != http.MethodGet && answer.Code != http.StatusBadRequest {
			t.Errorf("%s %s: status %d", r.Method, r.URL, answer.Code)
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = io.Copy(w, answer.Body)
	}))
	defer server.Close()
	h.env[cli.TokenVariable] = "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"alice"}`)) + ".x"
	var got struct {
		Identity      string `json:"identity"`
		Transport     string `json:"transport"`
		Authorization string `json:"authorization"`
		Verified      bool   `json:"verified"`
		Operations    []struct {
			Operation string `json:"operation"`
			Allowed   string `json:"allowed"`
			Inferred  bool   `json:"inferred"`
		} `json:"operations"`
	}
	if err := json.Unmarshal([]byte(h.mustRun("whoami", "--api", server.URL, "--json")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Identity != "alice" || got.Verified || got.Transport != "api" || got.Authorization != "token" {
		t.Errorf("%+v", got)
	}
	is := map[string]string{}
	for _, o := range got.Operations {
		if is[o.Operation] = o.Allowed; o.Inferred {
			is[o.Operation] += " (inferred)"
		}
	}
	for operation, want := range map[string]string{
		"getInstance": "allowed", "listInstances": "allowed", "getHealth": "allowed", "listJobs": "denied",
		"startJob": "denied", "purgeInstance": "allowed (inferred)", "queryInstance": "allowed (inferred)",
	} {
		if is[operation] != want {
			t.Errorf("%s is %q, want %q", operation, is[operation], want)
		}
	}
	text := strings.Join(strings.Fields(h.mustRun("whoami", "--api", server.URL)), " ")
	for _, want := range []string{
		"alice (JWT, not verified)", "getInstance allowed GrantRead", "startJob denied GrantPurge",
		"purgeInstance allowed (inferred) GrantPurge", "inferred: the operation was not called",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("printed %s, which lacks %q", text, want)
		}
	}
}

func TestWhoAmI_directAccess_reportsIdentityOfCredentials(t *testing.T) {
	t.Parallel()
	h := setup(t)
	h.identity = func(context.Context) (cli.Identity, error) {
		return cli.Identity{ARN: "arn:aws:iam::1:user/ann", Account: "1", Region: "eu-west-1"}, nil
	}
	text := h.mustRun("whoami", "--hub", "shop")
	for _, want := range []string{"arn:aws:iam::1:user/ann", "direct, hub shop, region eu-west-1"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q: %s", want, text)
		}
	}
	h.identity = func(context.Context) (cli.Identity, error) { return cli.Identity{}, errors.New("no credentials") }
	h.wantError(cli.CodeError, "no credentials", "whoami")
}

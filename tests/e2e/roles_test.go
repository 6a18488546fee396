package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/api"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/client/sigv4"
	"github.com/perdure/perdure/provider/dynamo"
	"github.com/perdure/perdure/tests/localcloud"
)

// rolesPage has the policies of the personas, and the operations that they permit.
const rolesPage = "../../docs/operate/least-privilege.md"

// persona is a row of the page's table, and the policy below the heading with its name.
type persona struct {
	name, policy string
	operations   map[string]bool
}

// readPersonas reads the page. Each persona may also call all reads.
func readPersonas(t *testing.T) (all []persona) {
	t.Helper()
	page, err := os.ReadFile(rolesPage)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || !strings.Contains(cells[1], "`Grant") {
			continue
		}
		p := persona{name: strings.TrimPrefix(cells[0], "| "), operations: map[string]bool{}}
		for _, o := range routes() {
			p.operations[o.ID] = o.Method == http.MethodGet
		}
		for i, id := range strings.Split(cells[2], "`") {
			if _, known := p.operations[id]; i%2 == 1 && known {
				p.operations[id] = true
			} else if i%2 == 1 {
				t.Errorf("%s: unknown operation %q", p.name, id)
			}
		}
		heading := "\n### " + strings.ToUpper(p.name[:1]) + p.name[1:] + "\n"
		_, section, _ := strings.Cut(string(page), heading)
		_, section, _ = strings.Cut(section, "```json\n")
		p.policy, _, _ = strings.Cut(section, "```")
		if !json.Valid([]byte(p.policy)) || !strings.Contains(p.policy, "REGION:ACCOUNT:API/") {
			t.Fatalf("%s: got policy %q", p.name, p.policy)
		}
		all = append(all, p)
	}
	if len(all) != 4 {
		t.Fatalf("got personas %+v", all)
	}
	return all
}

// routes returns the operations of the HTTP API.
func routes() []api.Operation {
	return slices.DeleteFunc(api.Operations(), func(o api.Operation) bool { return o.Path == "" })
}

// accountOf returns the account of the credentials.
func accountOf(t *testing.T, cfg aws.Config) string {
	t.Helper()
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return *who.Account
}

// assume creates a role that has only a policy, and returns its credentials. The policy may have the placeholders of
// the page.
func assume(t *testing.T, name, policy string) aws.Config {
	t.Helper()
	root, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tokens, roles, account := sts.NewFromConfig(root), iam.NewFromConfig(root), accountOf(t, root)
	apiID, _, _ := strings.Cut(hub.cloud.APIHost, ".")
	policy = strings.ReplaceAll(policy, "REGION:ACCOUNT:API/", root.Region+":"+account+":"+apiID+"/")
	name = "least-privilege-" + strings.ReplaceAll(name, " ", "-")
	trust := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:AssumeRole",` +
		`"Principal":{"AWS":"arn:aws:iam::` + account + `:root"}}]}`
	role := createRole(t, roles, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust})
	if _, err := roles.PutRolePolicy(t.Context(),
		&iam.PutRolePolicyInput{RoleName: &name, PolicyName: &name, PolicyDocument: &policy}); err != nil {
		t.Fatal(err)
	}
	session, err := tokens.AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: role.Arn, RoleSessionName: &name})
	if err != nil {
		t.Fatal(err)
	}
	hub.cloud.AddSession(*session.Credentials.AccessKeyId)
	root.Credentials = credentials.NewStaticCredentialsProvider(*session.Credentials.AccessKeyId,
		*session.Credentials.SecretAccessKey, *session.Credentials.SessionToken)
	return root
}

// createRole returns a new role. The SDK repeats a request whose response is lost, so the role can exist already.
func createRole(t *testing.T, roles *iam.Client, in *iam.CreateRoleInput) *iamtypes.Role {
	t.Helper()
	created, err := roles.CreateRole(t.Context(), in)
	if err == nil {
		return created.Role
	}
	if _, exists := errors.AsType[*iamtypes.EntityAlreadyExistsException](err); !exists {
		t.Fatal(err)
	}
	found, err := roles.GetRole(t.Context(), &iam.GetRoleInput{RoleName: in.RoleName})
	if err != nil {
		t.Fatal(err)
	}
	return found.Role
}

// lossy is an HTTP client that loses its first response.
type lossy struct{ lost bool }

func (l *lossy) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err != nil || l.lost {
		return answer, err
	}
	l.lost = true
	return nil, errors.Join(syscall.ECONNRESET, answer.Body.Close())
}

// A busy machine loses responses. The helpers of the tests then find what the repeated request found.
func TestCreate_lostResponse_findsWhatExists(t *testing.T) {
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name, trust := t.Name(), `{"Version":"2012-10-17","Statement":[]}`
	cfg.HTTPClient = &lossy{}
	in := &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust}
	role := createRole(t, iam.NewFromConfig(cfg), in)
	if *role.RoleName != name {
		t.Errorf("got role %q", *role.RoleName)
	}
	cfg.HTTPClient = &lossy{}
	localcloud.CreateTable(t, dynamodb.NewFromConfig(cfg), localcloud.TableInput(name))
}

// toAPI is an HTTP client that finds the host of the API, whose name does not resolve.
func toAPI(t *testing.T) *http.Client {
	t.Helper()
	cloud, err := url.Parse(os.Getenv("AWS_ENDPOINT_URL"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, cloud.Host)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// signed sends a request that a role has signed to the API Gateway.
func signed(t *testing.T, cfg aws.Config, h *http.Client, method, target string, body []byte) *http.Response {
	t.Helper()
	who, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+hub.cloud.APIHost+target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(t.Context(), who, r, hex.EncodeToString(sum[:]), "execute-api", cfg.Region,
		time.Now()); err != nil {
		t.Fatal(err)
	}
	answer, err := h.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// signingProxy returns the URL of a server that signs requests for a role and sends them to the API.
func signingProxy(t *testing.T, cfg aws.Config, h *http.Client) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer := signed(t, cfg, h, r.Method, r.RequestURI, body)
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// request returns the method, the target and the body of a call that the API rejects, or that reads a missing object.
func requestOf(o *api.Operation) (method, target string) {
	segments := strings.Split(o.Path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "nobody"
		}
	}
	target = strings.Join(segments, "/")
	if o.Method != http.MethodGet {
		target += "?unknown=true"
	}
	return o.Method, target
}

// The local cloud enforces the policies of the page. A role of each persona may call the operations that the page lists
// and no others, has no direct access, and whoami reports the same.
func TestRoles_policiesOfThePage_permitTheirOperations(t *testing.T) {
	if onLocalStack {
		t.Skip("LocalStack does not enforce IAM")
	}
	h := toAPI(t)
	for _, p := range readPersonas(t) {
		t.Run(p.name, func(t *testing.T) {
			cfg := assume(t, p.name, p.policy)
			for _, o := range routes() {
				method, target := requestOf(&o)
				answer := signed(t, cfg, h, method, target, nil)
				if isDeniedCall(t, answer) == p.operations[o.ID] ||
					answer.StatusCode >= http.StatusInternalServerError {
					t.Errorf("%s: got HTTP %d, allowed by the page: %v", o.ID, answer.StatusCode, p.operations[o.ID])
				}
			}
			// The resource */GET/v1/* also matches this path, which therefore passes the gateway. The API rejects it.
			disguised := signed(t, cfg, h, http.MethodPost, "/v1/entities/GET/v1/add", []byte(`{"input":1}`))
			disguised.Body.Close()
			if disguised.StatusCode != http.StatusBadRequest {
				t.Errorf("a change in the disguise of a read: got HTTP %d", disguised.StatusCode)
			}
			wantWhoAmI(t, &p, signingProxy(t, cfg, h))
			wantNoDirectAccess(t, cfg)
			if p.operations["purgeInstance"] { // the persona with the most permissions
				wantNoDirectCommands(t, cfg)
			}
			wantChanges(t, &p, cfg, h)
		})
	}
}

// isDeniedCall reports whether the gateway has denied a call. It closes the response.
func isDeniedCall(t *testing.T, answer *http.Response) bool {
	t.Helper()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode == http.StatusForbidden && !bytes.Contains(body, []byte(`"code"`))
}

// wantWhoAmI compares the output of the command with the page.
func wantWhoAmI(t *testing.T, p *persona, endpoint string) {
	t.Helper()
	out, exit := perdure(t, "whoami", "--api", endpoint, "--json")
	var who struct {
		Operations []struct {
			Operation string `json:"operation"`
			Allowed   string `json:"allowed"`
			Inferred  bool   `json:"inferred"`
		} `json:"operations"`
	}
	if err := json.Unmarshal([]byte(out), &who); err != nil || exit != 0 || len(who.Operations) != len(routes()) {
		t.Fatalf("whoami: got exit code %d, %v, %s", exit, err, out)
	}
	for _, o := range who.Operations {
		want := "denied"
		if p.operations[o.Operation] {
			want = "allowed"
		}
		if o.Allowed != want {
			t.Errorf("whoami: %s is %s, want %s", o.Operation, o.Allowed, want)
		}
	}
}

// wantNoDirectAccess tries to use the hub without the API.
func wantNoDirectAccess(t *testing.T, cfg aws.Config) {
	t.Helper()
	p, err := dynamo.Open(t.Context(), "e2e") // with the permissions of root
	if err != nil {
		t.Fatal(err)
	}
	table, queues := dynamodb.NewFromConfig(cfg), sqs.NewFromConfig(cfg)
	where, inbox, text := p.Config().Table, p.Config().InboxURL, "{}"
	key := map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "i#1"}, "sk": &types.AttributeValueMemberS{Value: "i"},
	}
	for name, call := range map[string]func() error{
		"read": func() error {
			_, err := table.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &where, Key: key})
			return err
		},
		"write": func() error {
			_, err := table.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &where, Item: key})
			return err
		},
		"send": func() error {
			_, err := queues.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: &inbox, MessageBody: &text, MessageGroupId: &text, MessageDeduplicationId: &text,
			})
			return err
		},
		"receive": func() error {
			_, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &inbox})
			return err
		},
	} {
		if err := call(); !isAccessDenied(err) {
			t.Errorf("%s: got error %v, want an access denial", name, err)
		}
	}
}

// directCommands are commands that need direct access.
var directCommands = [][]string{{"reconcile", "--yes"}, {"sweep"}, {"doctor"}, {"pause", "--yes"}, {"resume"}, {"keys"}}

// wantNoDirectCommands tries to run the commands that need direct access.
func wantNoDirectCommands(t *testing.T, cfg aws.Config) {
	t.Helper()
	for _, args := range directCommands {
		if exit, complaint := as(t, cfg, append(args, "--hub", "e2e")...); exit == 0 ||
			!strings.Contains(complaint, "AccessDenied") {
			t.Errorf("perdure %s: got exit code %d: %s", args[0], exit, complaint)
		}
	}
}

func isAccessDenied(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && strings.HasPrefix(e.ErrorCode(), "AccessDenied")
}

// as runs the command-line tool with the credentials of a role, and returns its exit code and its output.
func as(t *testing.T, cfg aws.Config, args ...string) (exit int, output string) {
	t.Helper()
	who, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), hub.perdure, args...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+who.AccessKeyID, "AWS_SECRET_ACCESS_KEY="+who.SecretAccessKey,
		"AWS_SESSION_TOKEN="+who.SessionToken)
	out, err := cmd.CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode(), string(out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, string(out)
}

// wantChanges starts, cancels and purges an instance with a client of the role. Each call has an effect exactly if the
// page permits it.
func wantChanges(t *testing.T, p *persona, cfg aws.Config, h *http.Client) {
	t.Helper()
	c, err := client.Dial("http://"+hub.cloud.APIHost, sigv4.WithConfig(cfg), client.WithHTTPClient(h))
	if err != nil {
		t.Fatal(err)
	}
	one := id(t, 1)
	_, err = c.Start(t.Context(), "echo", nil, client.WithInstanceID(one))
	wantPermitted(t, p, "startOrchestration", err)
	if err != nil {
		if _, err := c.Status(t.Context(), one); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("the instance of a denied start: got error %v", err)
		}
		if _, err := hub.client.Start(t.Context(), "echo", nil, client.WithInstanceID(one)); err != nil {
			t.Fatal(err)
		}
	}
	wantPermitted(t, p, "cancelInstance", c.Cancel(t.Context(), one, "enough"))
	wantPermitted(t, p, "purgeInstance", c.Purge(t.Context(), one, client.Force()))
	if _, err := c.Status(t.Context(), one); (err == nil) == p.operations["purgeInstance"] {
		t.Errorf("the instance after the purge: got error %v", err)
	}
}

func wantPermitted(t *testing.T, p *persona, operation string, err error) {
	t.Helper()
	if p.operations[operation] != (err == nil) || err != nil && !strings.Contains(err.Error(), "status 403") {
		t.Errorf("%s: got error %v, permitted by the page: %v", operation, err, p.operations[operation])
	}
}

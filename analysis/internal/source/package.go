// Package source describes the package that the linter checks: its functions, assignments and ignore directives.
package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// Settings are the analyzer's flags.
type Settings struct {
	// Disabled lists IDs of rules.
	Disabled []string
	Warnings bool
}

func (s *Settings) enables(r *rules.Rule) bool {
	return !slices.Contains(s.Disabled, r.ID) && (s.Warnings || !r.Warning)
}

// Package is the package that is checked.
type Package struct {
	Pass *analysis.Pass
	// Foreign marks a package of another module. It exports facts but has no findings.
	Foreign bool
	// Assigned has the values that are assigned to each variable. Writers has the first write of each package variable.
	Assigned map[*types.Var][]ast.Expr
	Writers  map[*types.Var]token.Pos
	Declared map[*types.Func]*ast.FuncDecl

	settings *Settings
	ignores  []*ignore
	// contextUse caches the results of contextSearch for methods.
	contextUse map[*types.Func]bool
}

// Function is a function, a literal that takes an orchestration's context, or the initial value of a package variable.
type Function struct {
	Name string
	Body ast.Node
	Sig  *types.Signature // nil for a variable
	// Outer is the function around a literal.
	Outer *Function
	// Orchestration marks orchestration code. Its findings are reported in the function itself and not in callers.
	Orchestration bool
}

// Read reads the directives, declarations and assignments of a package.
func Read(pass *analysis.Pass, s *Settings) *Package {
	p := &Package{
		Pass: pass, Foreign: pass.Module != nil && pass.Module.Version != "",
		Assigned: map[*types.Var][]ast.Expr{}, Writers: map[*types.Var]token.Pos{},
		Declared: map[*types.Func]*ast.FuncDecl{},
		settings: s, contextUse: map[*types.Func]bool{},
	}
	p.readIgnores()
	for _, file := range pass.Files {
		p.readAssignments(file)
	}
	return p
}

// Report reports a finding, unless a directive or the settings exclude it. A non-empty instead replaces the advice of
// the rule.
func (p *Package) Report(r *rules.Rule, pos token.Pos, instead, what string) {
	if p.Ignored(r, pos) || !p.settings.enables(r) {
		return
	}
	if instead == "" {
		instead = r.Instead
	}
	text := what + ": " + r.Why + "; " + instead + " [" + r.ID + "]"
	if r.Warning {
		text = "warning: " + text
	}
	p.Pass.Report(analysis.Diagnostic{Pos: pos, Category: r.ID, Message: text})
}

// TypeOf returns the type of an expression, or nil.
func (p *Package) TypeOf(e ast.Expr) types.Type { return p.Pass.TypesInfo.TypeOf(e) }

// Callee returns the function or method that a call names, or nil for calls of values, conversions and builtins.
func (p *Package) Callee(c *ast.CallExpr) *types.Func { return syntax.CalleeOf(p.Pass.TypesInfo, c) }

// Used returns the function that the last name of an expression refers to, or nil.
func (p *Package) Used(e ast.Expr) *types.Func {
	f, _ := p.Pass.TypesInfo.Uses[syntax.NameIn(e)].(*types.Func)
	return f
}

// IsBuiltin reports whether a call is one of these builtin functions.
func (p *Package) IsBuiltin(c *ast.CallExpr, names ...string) bool {
	b, ok := p.Pass.TypesInfo.Uses[syntax.NameIn(c.Fun)].(*types.Builtin)
	return ok && slices.Contains(names, b.Name())
}

// Variable returns the variable that an expression names, or nil.
func (p *Package) Variable(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := p.Pass.TypesInfo.ObjectOf(id).(*types.Var)
	return v
}

// Display returns the name of a function or variable for findings: methods with their type, objects of other packages
// with their package.
func (p *Package) Display(obj types.Object) string {
	name := obj.Name()
	if f, ok := obj.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			name = types.TypeString(recv.Type(), func(*types.Package) string { return "" }) + "." + name
			name, _, _ = strings.Cut(strings.TrimPrefix(name, "*"), "[")
			if !strings.HasSuffix(name, "."+obj.Name()) {
				name += "." + obj.Name()
			}
		}
	}
	if obj.Pkg() != nil && obj.Pkg() != p.Pass.Pkg {
		name = obj.Pkg().Name() + "." + name
	}
	return name
}

// At returns a position for findings: directory, file and line.
func (p *Package) At(pos token.Pos) string {
	where := p.Pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(p.Pass.Pkg.Path()), filepath.Base(where.Filename)), where.Line)
}

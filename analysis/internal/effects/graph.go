// Package effects finds operations in orchestration code that are not deterministic, in the code itself and in all
// functions that it calls.
package effects

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/source"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// maxEffects limits the effects that a function passes to its callers.
const maxEffects = 12

// Graph has the functions of a package, their effects and their calls.
type Graph struct {
	*source.Package

	nodes []*node
	of    map[types.Object]*node
	// called has the call of each function name.
	called map[*ast.Ident]*ast.CallExpr
}

// node is a function with its effects.
type node struct {
	source.Function

	obj types.Object
	// own lists the effects of the node's own code. all also includes the effects of its calls.
	own   []found
	calls []call
	all   []effect
}

// found is an effect with its position.
type found struct {
	effect
	pos token.Pos
}

// call is a call or a mention of a function or variable that may have effects.
type call struct {
	verb string
	to   types.Object
	pos  token.Pos
	// sorted marks a call whose result the caller sorts.
	sorted bool
}

// Build finds the effects of all functions of a package, and exports them as facts.
func Build(p *source.Package) *Graph {
	g := &Graph{Package: p, of: map[types.Object]*node{}, called: map[*ast.Ident]*ast.CallExpr{}}
	for _, file := range p.Pass.Files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				g.addFunction(d)
			case *ast.GenDecl:
				g.addVariables(d)
			}
		}
	}
	g.propagate()
	g.export()
	return g
}

// Orchestrations returns the functions that run as orchestration code.
func (g *Graph) Orchestrations() (all []*source.Function) {
	for _, n := range g.nodes {
		if n.Orchestration {
			all = append(all, &n.Function)
		}
	}
	return all
}

func (g *Graph) addFunction(d *ast.FuncDecl) {
	obj, ok := g.Pass.TypesInfo.Defs[d.Name].(*types.Func)
	if !ok || d.Body == nil {
		return
	}
	sig := obj.Signature()
	g.add(obj, source.Function{
		Name: g.Display(obj), Body: d.Body, Sig: sig, Orchestration: api.IsOrchestrationCode(sig),
	})
}

// addVariables adds package variables.
func (g *Graph) addVariables(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for i, name := range v.Names {
			obj := g.Pass.TypesInfo.Defs[name]
			if obj == nil {
				continue
			}
			f := source.Function{Name: name.Name}
			if len(v.Values) > 0 {
				f.Body = v.Values[min(i, len(v.Values)-1)]
			}
			g.add(obj, f)
		}
	}
}

func (g *Graph) add(obj types.Object, f source.Function) {
	n := &node{Function: f, obj: obj}
	g.nodes = append(g.nodes, n)
	g.of[obj] = n
	if n.Body != nil {
		(&walk{Graph: g, node: n}).over(n.Body)
	}
	if v, ok := obj.(*types.Var); ok {
		g.limitToReaders(n, v)
	}
}

// limitToReaders removes the effects of a variable's initial value that do not affect readers of the variable.
func (g *Graph) limitToReaders(n *node, v *types.Var) {
	if !syntax.IsFunction(v) {
		n.own = slices.DeleteFunc(n.own, func(f found) bool { return g.Foreign || !differsByProcess(f.Rule) })
	}
	if by, ok := g.Writers[v]; ok && !g.Ignored(rules.GlobalRead, v.Pos()) {
		n.own = append(n.own, found{
			effect{Rule: rules.GlobalRead.ID, Does: "is written at " + g.At(by), At: g.At(v.Pos())}, v.Pos(),
		})
	}
}

// differsByProcess reports whether an effect gives a package variable another value in each process.
func differsByProcess(ruleID string) bool {
	return slices.Contains([]string{rules.Clock.ID, rules.Random.ID, rules.Environment.ID, rules.IO.ID}, ruleID)
}

// propagate adds effects to callers until nothing changes. It adds effects with shorter chains first.
func (g *Graph) propagate() {
	for _, n := range g.nodes {
		for _, f := range n.own {
			n.addEffect(f.effect)
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			changed = g.addEffectsOfCalls(n) || changed
		}
	}
}

func (g *Graph) addEffectsOfCalls(n *node) (changed bool) {
	for _, c := range n.calls {
		for _, e := range g.effectsOf(c) {
			e = e.through(c.verb, g.Display(c.to))
			e.At = g.At(c.pos)
			if n.Sig != nil || syntax.IsFunction(n.obj) || !g.Foreign && differsByProcess(e.Rule) {
				changed = n.addEffect(e) || changed
			}
		}
	}
	return changed
}

// addEffect reports whether the effect was added. A node has each effect once.
func (n *node) addEffect(e effect) bool {
	if len(n.all) >= maxEffects || slices.ContainsFunc(n.all, func(have effect) bool {
		return have.key() == e.key()
	}) {
		return false
	}
	n.all = append(n.all, e)
	return true
}

// effectsOf returns the effects that a call has on its caller.
func (g *Graph) effectsOf(c call) []effect {
	var all []effect
	if n := g.of[c.to]; n != nil {
		if n.Orchestration {
			return nil
		}
		all = n.all
	} else {
		var fact Fact
		if c.to.Pkg() == g.Pass.Pkg || !g.Pass.ImportObjectFact(c.to, &fact) {
			return nil
		}
		all = fact.List
	}
	if c.sorted {
		all = slices.DeleteFunc(slices.Clone(all), func(e effect) bool { return e.Unsorted })
	}
	return all
}

// export exports facts for the packages that import this one.
func (g *Graph) export() {
	for _, n := range g.nodes {
		list := n.all
		if g.Foreign {
			list = slices.DeleteFunc(slices.Clone(list), func(e effect) bool { return !rules.ByID(e.Rule).Foreign })
		}
		if n.obj != nil && !n.Orchestration && len(list) > 0 {
			g.Pass.ExportObjectFact(n.obj, &Fact{list})
		}
		if f, ok := n.obj.(*types.Func); ok && n.Orchestration {
			g.ExportContextUse(f)
		}
	}
}

// ReportEffects reports the effects of orchestration code.
func (g *Graph) ReportEffects() {
	for _, n := range g.nodes {
		if !n.Orchestration {
			continue
		}
		for _, f := range n.own {
			g.Report(rules.ByID(f.Rule), f.pos, f.Instead, f.describe(n.Name))
		}
		reported := map[string]bool{}
		for _, c := range n.calls {
			for _, e := range g.effectsOf(c) {
				e = e.through(c.verb, g.Display(c.to))
				if text := e.describe(n.Name); !reported[text] {
					reported[text] = true
					g.Report(rules.ByID(e.Rule), c.pos, e.Instead, text)
				}
			}
		}
	}
}

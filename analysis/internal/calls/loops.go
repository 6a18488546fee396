package calls

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"github.com/perdure/perdure/analysis/internal/api"
	"github.com/perdure/perdure/analysis/internal/rules"
	"github.com/perdure/perdure/analysis/internal/syntax"
)

// loops checks a loop that no condition ends.
func (ck *checker) loops(f *ast.ForStmt) {
	if !ck.isAlways(f.Cond) || !ck.UsesContextWithin(f.Body) {
		return
	}
	s := &exitSearch{checker: ck}
	ast.Inspect(f.Body, s.visit)
	switch {
	case !s.onError && !s.found:
		ck.Report(rules.Endless, f.Pos(), endOnCancel,
			ck.function.Name+" loops forever, even after it is cancelled, because no error ends the loop")
	case !s.found && !ck.continuesAsNew():
		ck.Report(rules.Endless, f.Pos(), "", ck.function.Name+" loops forever")
	}
}

// isAlways reports whether a condition is missing or the constant true.
func (ck *checker) isAlways(cond ast.Expr) bool {
	if cond == nil {
		return true
	}
	v := ck.constant(cond)
	return v != nil && constant.BoolVal(v)
}

// endOnCancel is the advice for a loop that no error ends.
const endOnCancel = "return the error of each wait, and continue as new from time to time: return " +
	"perdure.ContinueAsNew[Out](ctx, in)"

// continuesAsNew reports whether the function calls ContinueAsNew.
func (ck *checker) continuesAsNew() bool {
	return syntax.Contains(ck.function.Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return false
		}
		f, ok := ck.Pass.TypesInfo.Uses[id].(*types.Func)
		return ok && api.Is(f.Origin(), "ContinueAsNew")
	})
}

// exitSearch searches a loop for statements that end it.
type exitSearch struct {
	*checker

	around  []ast.Node
	found   bool // an exit without an error
	onError bool // an exit with an error
}

func (s *exitSearch) visit(n ast.Node) bool {
	if n == nil {
		s.around = s.around[:len(s.around)-1]
		return true
	}
	switch n := n.(type) {
	case *ast.FuncLit:
		return false
	case *ast.ReturnStmt:
		s.addExit(n)
	case *ast.BranchStmt:
		if n.Tok == token.GOTO || n.Tok == token.BREAK && (n.Label != nil || !s.nested()) {
			s.addExit(n)
		}
	}
	s.around = append(s.around, n)
	return true
}

// addExit records an exit.
func (s *exitSearch) addExit(exit ast.Stmt) {
	if s.afterError(exit) {
		s.onError = true
	} else {
		s.found = true
	}
}

// nested reports whether a break would end a statement within the loop.
func (s *exitSearch) nested() bool {
	for _, n := range s.around {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return true
		}
	}
	return false
}

// afterError reports whether an exit is only reached after an error.
func (s *exitSearch) afterError(exit ast.Node) bool {
	for _, n := range slices.Backward(s.around) {
		switch n := n.(type) {
		case *ast.IfStmt:
			if exit == n.Body && s.isErrorTest(n.Cond, token.NEQ) ||
				exit == n.Else && s.isErrorTest(n.Cond, token.EQL) {
				return true
			}
		case *ast.CaseClause:
			if s.areErrorTests(n.List) || s.successLeaves(n.Body, exit) {
				return true
			}
		case *ast.BlockStmt:
			if s.successLeaves(n.List, exit) {
				return true
			}
		}
		exit = n
	}
	return false
}

// successLeaves reports whether a statement before the exit leaves the list if there is no error.
func (s *exitSearch) successLeaves(list []ast.Stmt, exit ast.Node) bool {
	for _, stmt := range list {
		if stmt == exit {
			break
		}
		i, ok := stmt.(*ast.IfStmt)
		if !ok || !s.isErrorTest(i.Cond, token.EQL) || len(i.Body.List) == 0 {
			continue
		}
		switch i.Body.List[len(i.Body.List)-1].(type) {
		case *ast.BranchStmt, *ast.ReturnStmt:
			return true
		}
	}
	return false
}

// areErrorTests reports whether the conditions of a case are all err != nil.
func (s *exitSearch) areErrorTests(conds []ast.Expr) bool {
	return len(conds) > 0 && !slices.ContainsFunc(conds, func(e ast.Expr) bool { return !s.isErrorTest(e, token.NEQ) })
}

// isErrorTest reports whether a condition compares an error with nil by an operator.
func (s *exitSearch) isErrorTest(cond ast.Expr, op token.Token) bool {
	b, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	if !ok || b.Op != op {
		return false
	}
	t := s.TypeOf(b.X)
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

//! Tokens, made into an expression: operators bind as in spreadsheets, and filters less tightly than all of them.

use crate::functions;
use crate::functions::function::Function;
use crate::functions::pattern::Pattern;
use crate::language::lex::{Spot, Token};
use crate::language::mistake::Mistake;
use crate::language::roots::Roots;
use crate::values::path::{Path, Step};
use crate::values::value::Value;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Literal(Value<'static>),
    /// A reference, or a field.
    Path(Path),
    /// What is below a value that was computed.
    Below(Box<Expr>, Vec<Step>),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Call(Call),
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) function: &'static Function,
    pub(crate) arguments: Vec<Expr>,
    /// The regular expression, compiled once, of a function that takes one, if it is written there.
    pub(crate) pattern: Option<Pattern>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Concat,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// More nesting or more parts than this is refused: evaluation walks the expression for every record that is written.
const DEEPEST: usize = 40;
const MOST_PARTS: usize = 500;

impl Operator {
    /// How it is written, and how tightly it binds.
    pub(crate) fn infix(self) -> Option<&'static Infix> {
        INFIX.iter().find(|infix| infix.operator == self)
    }

    /// The operator that a token stands for, and how tightly it binds.
    fn of(token: &Token) -> Option<(Self, u8)> {
        let is_meant = |mark: &str| match token {
            Token::Mark(found) => *found == mark,
            Token::Word(word) => word.eq_ignore_ascii_case(mark),
            _ => false,
        };
        let infix = INFIX.iter().find(|infix| infix.marks.iter().any(|mark| is_meant(mark)))?;
        Some((infix.operator, infix.binds))
    }
}

/// An operator between two operands.
pub(crate) struct Infix {
    /// The ways to write it.
    pub(crate) marks: &'static [&'static str],
    pub(crate) operator: Operator,
    /// How tightly it binds.
    pub(crate) binds: u8,
    /// A sentence for the documentation.
    pub(crate) about: &'static str,
    /// An expression, and its result as JSON. A test evaluates it.
    pub(crate) example: (&'static str, &'static str),
}

macro_rules! infix {
    ($($binds:literal $operator:ident [$($mark:literal),+] $about:literal, $example:literal => $result:literal;)+) => {
        /// All operators between two operands, those that bind most tightly first.
        pub(crate) const INFIX: &[Infix] = &[$(Infix {
            marks: &[$($mark),+],
            operator: Operator::$operator,
            binds: $binds,
            about: $about,
            example: ($example, $result),
        }),+];
    };
}

infix! {
    6 Multiply ["*"] "The product of two numbers.", "price * stock" => "0.7";
    6 Divide ["/"] "The quotient of two numbers.", "stock / 2" => "3.5";
    6 Remainder ["%"] "The remainder of a division. It is never negative.", "-7 % 3" => "2";
    5 Add ["+"] "The sum of two numbers.", "price + 0.2" => "0.3";
    5 Subtract ["-"] "The difference of two numbers.", "stock - 10" => "-3";
    4 Concat ["&"] "Two values as texts, one after the other.", r#"name & " " & size"# => r#""Red Shoe Large""#;
    3 Equal ["=", "=="] "Whether two values of one type are equal.", "size = 'Large'" => "true";
    3 Unequal ["!=", "<>"] "Whether two values of one type differ.", "stock <> 7" => "false";
    3 Less ["<"] "Whether the first is less, or earlier, than the second.", "price < 1" => "true";
    3 LessOrEqual ["<="] "The same, or equal.", "stock <= 7" => "true";
    3 Greater [">"] "Whether the first is greater, or later, than the second.", "since > date(2024, 1, 1)" => "true";
    3 GreaterOrEqual [">="] "The same, or equal.", "stock >= 8" => "false";
    2 And ["and", "&&"] "Whether both are true.", "active and stock > 5" => "true";
    1 Or ["or", "||"] "Whether one or both are true.", "active or stock > 100" => "true";
}

impl Expr {
    /// Shows every part of it to `see`.
    pub(crate) fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Self)) {
        see(self);
        match self {
            Self::Literal(_) | Self::Path(_) => {}
            Self::Negate(inner) | Self::Not(inner) | Self::Below(inner, _) => inner.visit(see),
            Self::Binary(_, left, right) => {
                left.visit(see);
                right.visit(see);
            }
            Self::Call(call) => call.arguments.iter().for_each(|argument| argument.visit(see)),
        }
    }
}

/// Makes an expression of tokens.
pub(crate) fn parse(spots: &[Spot], roots: &Roots<'_>) -> Result<Expr, Mistake> {
    let mut parser = Parser { spots, roots, place: 0, depth: 0, parts: 0 };
    let expr = parser.filtered()?;
    match parser.peek() {
        None => Ok(expr),
        Some(spot) => Err(Mistake::at(spot.at, "an operator is missing before this")),
    }
}

struct Parser<'a> {
    spots: &'a [Spot],
    roots: &'a Roots<'a>,
    place: usize,
    depth: usize,
    parts: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Spot> {
        self.spots.get(self.place)
    }

    fn next(&mut self) -> Result<&'a Spot, Mistake> {
        let spot = self.peek();
        self.place += 1;
        spot.ok_or_else(|| Mistake::invalid("ends too early"))
    }

    fn take(&mut self, mark: &'static str) -> bool {
        let found = self.peek().is_some_and(|spot| spot.token == Token::Mark(mark));
        self.place += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &'static str) -> Result<(), Mistake> {
        let at = self.peek().map_or_else(|| self.spots.last().map_or(1, |spot| spot.at), |spot| spot.at);
        if self.take(mark) { Ok(()) } else { Err(Mistake::at(at, format_args!("`{mark}` is missing"))) }
    }

    /// Refuses what nests too deeply or has too many parts.
    fn expect_room(&self) -> Result<(), Mistake> {
        if self.depth <= DEEPEST && self.parts <= MOST_PARTS {
            return Ok(());
        }
        Err(Mistake::new("expression_too_complex", "is nested too deeply or has too many parts"))
    }

    /// An expression with filters behind it: `x | f: a` is `f(x, a)`.
    fn filtered(&mut self) -> Result<Expr, Mistake> {
        let mut value = self.expression(0)?;
        let depth = self.depth;
        while self.take("|") {
            // Each filter is a call around those before it.
            self.depth += 1;
            self.expect_room()?;
            let spot = self.next()?;
            let Token::Word(name) = &spot.token else {
                return Err(Mistake::at(spot.at, "a filter has the name of a function"));
            };
            let function = self.function(functions::filter_name(name), spot.at)?;
            let mut arguments = vec![value];
            if self.take(":") {
                loop {
                    arguments.push(self.expression(0)?);
                    if !self.take(",") {
                        break;
                    }
                }
            }
            value = self.call(function, arguments, spot.at)?;
        }
        self.depth = depth;
        Ok(value)
    }

    /// An expression whose operators bind tighter than `least`.
    fn expression(&mut self, least: u8) -> Result<Expr, Mistake> {
        self.depth += 1;
        self.parts += 1;
        self.expect_room()?;
        let mut left = self.operand()?;
        while let Some(spot) = self.peek() {
            let Some((operator, binds)) = Operator::of(&spot.token).filter(|(_, binds)| *binds > least)
            else {
                break;
            };
            self.place += 1;
            let right = self.expression(binds)?;
            left = Expr::Binary(operator, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expr, Mistake> {
        /// Signs bind tighter than any operator between two operands.
        const TIGHTEST: u8 = 7;
        let spot = self.next()?;
        match &spot.token {
            Token::Number(number) => Ok(Expr::Literal(Value::Number(number.clone().into()))),
            Token::Text(text) => Ok(Expr::Literal(Value::Text(text.clone().into()))),
            Token::Field(key) => Ok(Expr::Path(self.roots.path(key, Vec::new())?)),
            Token::Root(root) => {
                let steps = self.steps();
                self.roots.path(root, steps).map(Expr::Path)
            }
            Token::Mark("(") => {
                let inner = self.filtered()?;
                self.expect(")")?;
                Ok(self.below(inner))
            }
            Token::Mark("-") => Ok(Expr::Negate(Box::new(self.expression(TIGHTEST)?))),
            Token::Mark("+") => self.expression(TIGHTEST),
            Token::Mark("!") => Ok(Expr::Not(Box::new(self.expression(TIGHTEST)?))),
            Token::Mark(mark) => Err(Mistake::at(spot.at, format_args!("`{mark}` cannot stand here"))),
            Token::Step(_) => {
                Err(Mistake::at(spot.at, "this stands behind a reference, such as `$contact.$name`"))
            }
            Token::Word(word) => self.word(word, spot.at),
        }
    }

    fn word(&mut self, word: &str, at: usize) -> Result<Expr, Mistake> {
        if !word.eq_ignore_ascii_case("not") && self.take("(") {
            let function = self.function(word, at)?;
            let arguments = self.arguments()?;
            let call = self.call(function, arguments, at)?;
            return Ok(self.below(call));
        }
        Ok(match word.to_ascii_lowercase().as_str() {
            "true" => Expr::Literal(Value::Boolean(true)),
            "false" => Expr::Literal(Value::Boolean(false)),
            "null" => Expr::Literal(Value::Null),
            // As loose as in most languages: `not a = b` denies the comparison.
            "not" => Expr::Not(Box::new(self.expression(2)?)),
            _ => {
                let steps = self.steps();
                Expr::Path(self.roots.path(word, steps)?)
            }
        })
    }

    /// The steps that stand here.
    fn steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(Spot { token: Token::Step(step), .. }) = self.peek() {
            steps.push(step.clone());
            self.place += 1;
        }
        steps
    }

    fn below(&mut self, expr: Expr) -> Expr {
        let steps = self.steps();
        if steps.is_empty() { expr } else { Expr::Below(Box::new(expr), steps) }
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, Mistake> {
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.expression(0)?);
                if self.take(")") {
                    break;
                }
                if !self.take(";") {
                    self.expect(",")?;
                }
            }
        }
        Ok(arguments)
    }

    fn function(&self, name: &str, at: usize) -> Result<&'static Function, Mistake> {
        let is_formula = self.roots.are_fields();
        functions::named(name, is_formula).ok_or_else(|| {
            let hint = functions::hint(name, is_formula);
            Mistake::at(at, format_args!("there is no function `{name}`{hint}"))
        })
    }

    fn call(&self, function: &'static Function, arguments: Vec<Expr>, at: usize) -> Result<Expr, Mistake> {
        if !function.takes(arguments.len()) {
            return Err(Mistake::at(at, format_args!("`{}` takes {}", function.name, function.arity())));
        }
        let pattern = match (function.takes_pattern(), arguments.get(1)) {
            (true, Some(Expr::Literal(Value::Text(source)))) => {
                Some(Pattern::new(source).map_err(|sentence| Mistake::at(at, sentence))?)
            }
            _ => None,
        };
        Ok(Expr::Call(Call { function, arguments, pattern }))
    }
}

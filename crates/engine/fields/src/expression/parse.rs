//! Tokens, made into an expression: operators bind as in spreadsheets.

use super::functions::{self, Function};
use super::lex::{Spot, Token, problem};
use super::operand::Operand;
use crate::values::problem::Problem;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Literal(Operand),
    Field(String),
    Negate(Box<Expr>),
    Not(Box<Expr>),
    Binary(Operator, Box<Expr>, Box<Expr>),
    Call(&'static Function, Vec<Expr>),
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
    operator: Operator,
    /// How tightly it binds.
    binds: u8,
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
            Self::Literal(_) | Self::Field(_) => {}
            Self::Negate(inner) | Self::Not(inner) => inner.visit(see),
            Self::Binary(_, left, right) => {
                left.visit(see);
                right.visit(see);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|argument| argument.visit(see)),
        }
    }
}

pub(crate) fn parse(spots: &[Spot]) -> Result<Expr, Problem> {
    let mut parser = Parser { spots, place: 0, depth: 0, parts: 0 };
    let expr = parser.expression(0)?;
    match parser.peek() {
        None => Ok(expr),
        Some(spot) => Err(problem(spot.at, "an operator is missing before this")),
    }
}

struct Parser<'a> {
    spots: &'a [Spot],
    place: usize,
    depth: usize,
    parts: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Spot> {
        self.spots.get(self.place)
    }

    fn next(&mut self) -> Result<&'a Spot, Problem> {
        let spot = self.peek();
        self.place += 1;
        spot.ok_or_else(|| Problem::new("invalid_formula", "ends too early"))
    }

    fn take(&mut self, mark: &'static str) -> bool {
        let found = self.peek().is_some_and(|spot| spot.token == Token::Mark(mark));
        self.place += usize::from(found);
        found
    }

    fn expect(&mut self, mark: &'static str) -> Result<(), Problem> {
        let at = self.peek().map_or_else(|| self.spots.last().map_or(1, |spot| spot.at), |spot| spot.at);
        if self.take(mark) { Ok(()) } else { Err(problem(at, format_args!("`{mark}` is missing"))) }
    }

    /// An expression whose operators bind tighter than `least`.
    fn expression(&mut self, least: u8) -> Result<Expr, Problem> {
        self.depth += 1;
        self.parts += 1;
        if self.depth > DEEPEST || self.parts > MOST_PARTS {
            return Err(Problem::new("formula_too_complex", "is nested too deeply or has too many parts"));
        }
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

    fn operand(&mut self) -> Result<Expr, Problem> {
        /// Signs bind tighter than any operator between two operands.
        const TIGHTEST: u8 = 7;
        let spot = self.next()?;
        match &spot.token {
            Token::Number(number) => Ok(Expr::Literal(Operand::Number(number.clone().into()))),
            Token::Text(text) => Ok(Expr::Literal(Operand::Text(text.clone()))),
            Token::Field(key) => Ok(Expr::Field(key.clone())),
            Token::Mark("(") => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Mark("-") => Ok(Expr::Negate(Box::new(self.expression(TIGHTEST)?))),
            Token::Mark("+") => self.expression(TIGHTEST),
            Token::Mark("!") => Ok(Expr::Not(Box::new(self.expression(TIGHTEST)?))),
            Token::Mark(mark) => Err(problem(spot.at, format_args!("`{mark}` cannot stand here"))),
            Token::Word(word) => self.word(word, spot.at),
        }
    }

    fn word(&mut self, word: &str, at: usize) -> Result<Expr, Problem> {
        if self.take("(") {
            let function = functions::named(word).ok_or_else(|| {
                problem(at, format_args!("there is no function `{word}`{}", functions::hint(word)))
            })?;
            return Ok(Expr::Call(function, self.arguments(function, at)?));
        }
        Ok(match word.to_ascii_lowercase().as_str() {
            "true" => Expr::Literal(Operand::Boolean(true)),
            "false" => Expr::Literal(Operand::Boolean(false)),
            "null" => Expr::Literal(Operand::Nothing),
            // As loose as in most languages: `not a = b` denies the comparison.
            "not" => Expr::Not(Box::new(self.expression(2)?)),
            _ => Expr::Field(word.to_owned()),
        })
    }

    fn arguments(&mut self, function: &'static Function, at: usize) -> Result<Vec<Expr>, Problem> {
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
        if function.takes(arguments.len()) {
            Ok(arguments)
        } else {
            Err(problem(at, format_args!("`{}` takes {}", function.name, function.arity())))
        }
    }
}

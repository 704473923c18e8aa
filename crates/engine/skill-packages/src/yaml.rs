//! Front matter as a tree with places. All scalars are texts: `version: 1.0` is the text `1.0`.
//!
//! Anchors and aliases are refused, so a document is never larger than its text. Depth is limited.

use crate::faults::Mistake;
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use std::collections::HashSet;
use std::ops::Range;

/// Maps and lists within each other, at most.
const DEPTH: usize = 16;

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    /// The first line, from 1.
    pub(crate) line: u32,
    /// The column of its first character, from 0.
    pub(crate) column: usize,
    /// The line and column after its last character. Of a block scalar: where the scanner stopped.
    pub(crate) end: (u32, usize),
}

/// A text, list or map.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Text { text: String, is_block: bool },
    List { items: Vec<Node>, is_flow: bool },
    Map { entries: Vec<(Node, Node)>, is_flow: bool },
}

impl Node {
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text { text, .. } => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_flow(&self) -> bool {
        matches!(&self.value, Value::List { is_flow: true, .. } | Value::Map { is_flow: true, .. })
    }
}

/// A document, and what only strict readers refuse.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) root: Option<Node>,
    /// The line of the first tag, such as `!!str`.
    pub(crate) tag: Option<u32>,
    /// The line of the first tab outside quotes, blocks and comments.
    pub(crate) tab: Option<u32>,
}

/// A list or map that is being read.
struct Open {
    node: Node,
    key: Option<Node>,
    /// The keys so far.
    keys: HashSet<String>,
}

/// Reads one document of YAML.
pub(crate) fn parse(text: &str) -> Result<Tree, Mistake> {
    let mut reader = Reader {
        characters: text.chars().collect(),
        texts: Vec::new(),
        open: Vec::new(),
        tree: Tree::default(),
    };
    let mut ended = false;
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|fault| scan_mistake(&fault))?;
        match &event {
            Event::DocumentStart(_) if ended => {
                return Err(Mistake::new(line(span), "The front matter has a second document of YAML."));
            }
            Event::DocumentEnd => ended = true,
            _ => reader.take(event, span)?,
        }
    }
    reader.tree.tab = reader.first_tab();
    Ok(reader.tree)
}

struct Reader {
    /// The text, since places count characters.
    characters: Vec<char>,
    /// The scalars in quotes or blocks: where tabs are text.
    texts: Vec<Range<usize>>,
    open: Vec<Open>,
    tree: Tree,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Mistake> {
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => (*anchor != 0, tag.is_some()),
            Event::Alias(_) => (true, false),
            _ => (false, false),
        };
        if anchor {
            return Err(Mistake::new(line(span), "Anchors and aliases (`&name`, `*name`) are not allowed."));
        }
        if tag {
            self.tree.tag.get_or_insert(line(span));
        }
        match event {
            Event::Scalar(text, style, ..) => {
                // The parser reports an absent value as `~` without a length.
                let is_absent = span.start == span.end && style == ScalarStyle::Plain;
                let text = if is_absent { String::new() } else { text.into_owned() };
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                if self.is_indented_by_tab(span) {
                    return Err(Mistake::new(line(span), "A tab cannot indent; use spaces."));
                }
                let mut node = node(Value::Text { text, is_block }, span);
                let mut end = span.end.index();
                if matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted) {
                    (node.end, end) = self.closing_quote(span);
                }
                if style != ScalarStyle::Plain {
                    self.texts.push(span.start.index()..end);
                }
                self.add(node)
            }
            Event::SequenceStart(..) => {
                let is_flow = self.begins_with(span, '[');
                self.enter(Value::List { items: Vec::new(), is_flow }, span)
            }
            Event::MappingStart(..) => {
                let is_flow = self.begins_with(span, '{');
                self.enter(Value::Map { entries: Vec::new(), is_flow }, span)
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(mut open) => {
                    open.node.end = place(span.end);
                    self.add(open.node)
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn enter(&mut self, value: Value, span: Span) -> Result<(), Mistake> {
        if self.open.len() >= DEPTH {
            return Err(Mistake::new(line(span), "The front matter is nested too deeply."));
        }
        self.open.push(Open { node: node(value, span), key: None, keys: HashSet::new() });
        Ok(())
    }

    fn add(&mut self, node: Node) -> Result<(), Mistake> {
        let Some(open) = self.open.last_mut() else {
            self.tree.root = Some(node);
            return Ok(());
        };
        match &mut open.node.value {
            Value::List { items, .. } => items.push(node),
            Value::Map { entries, .. } => match open.key.take() {
                None => open.key = Some(node),
                Some(key) => {
                    refuse_duplicate(&mut open.keys, &key)?;
                    entries.push((key, node));
                }
            },
            Value::Text { .. } => {}
        }
        Ok(())
    }

    /// Whether only spaces and tabs stand before a scalar on its line, with a tab among them.
    fn is_indented_by_tab(&self, span: Span) -> bool {
        let before = self.characters.get(..span.start.index()).unwrap_or_default();
        let mut blanks = before.iter().rev().take_while(|c| matches!(c, ' ' | '\t'));
        let count = blanks.clone().count();
        count == span.start.col() && blanks.any(|c| *c == '\t')
    }

    fn first_tab(&self) -> Option<u32> {
        let mut texts = self.texts.iter().peekable();
        let (mut line, mut is_comment, mut before) = (1, false, '\n');
        for (place, c) in self.characters.iter().copied().enumerate() {
            while texts.next_if(|text| text.end <= place).is_some() {}
            let is_text = texts.peek().is_some_and(|text| text.contains(&place));
            match c {
                '\n' => (line, is_comment) = (line + 1, false),
                '#' if !is_text && matches!(before, ' ' | '\t' | '\n') => is_comment = true,
                '\t' if !is_text && !is_comment => return Some(line),
                _ => {}
            }
            before = c;
        }
        None
    }

    /// The place and the index after the closing quote. The span of the scanner goes on to the end of a comment.
    fn closing_quote(&self, span: Span) -> ((u32, usize), usize) {
        let (mut line, mut column) = place(span.start);
        let mut characters = self.characters.iter().copied().enumerate().skip(span.start.index()).peekable();
        let quote = characters.next().map(|(_, c)| c);
        column += 1;
        while let Some((index, c)) = characters.next() {
            column += 1;
            let is_escape = match quote {
                Some('"') => c == '\\',
                _ => c == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\''),
            };
            if is_escape && characters.next_if(|(_, next)| *next != '\n').is_some() {
                column += 1;
            } else if c == '\n' {
                (line, column) = (line + 1, 0);
            } else if Some(c) == quote {
                return ((line, column), index + 1);
            }
        }
        (place(span.end), span.end.index())
    }

    fn begins_with(&self, span: Span, wanted: char) -> bool {
        self.characters.get(span.start.index()) == Some(&wanted)
    }
}

fn refuse_duplicate(keys: &mut HashSet<String>, key: &Node) -> Result<(), Mistake> {
    let Some(name) = key.text() else {
        return Err(Mistake::new(key.line, "A key is a list or a map."));
    };
    match keys.insert(name.to_owned()) {
        true => Ok(()),
        false => Err(Mistake::new(key.line, format!("The key `{}` is there twice.", shortened(name)))),
    }
}

/// The first 60 characters, for messages.
pub(crate) fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

fn node(value: Value, span: Span) -> Node {
    Node { value, line: line(span), column: span.start.col(), end: place(span.end) }
}

fn line(span: Span) -> u32 {
    place(span.start).0
}

fn place(marker: saphyr_parser::Marker) -> (u32, usize) {
    (u32::try_from(marker.line()).unwrap_or(u32::MAX), marker.col())
}

fn scan_mistake(fault: &ScanError) -> Mistake {
    Mistake::new(place(*fault.marker()).0, format!("The front matter is no YAML: {}.", fault.info()))
}

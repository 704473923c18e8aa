//! `#[operation]`: one declaration for an operation's address, scope and behaviour.
//!
//! ```text
//! /// Write a note
//! ///
//! /// Notes are seen by the team, never by the contact.
//! #[operation(post "/contacts/{contactId}/notes", scope = "contacts:write")]
//! fn create_contact_note(tx: &mut Tx, caller: &Caller, Path(contact_id): Path<ContactId>, Body(new): Body<NewNote>)
//!     -> Result<Created<Note>> { … }
//! ```
//! expands to the function as it is and `pub struct CreateContactNote` with an `impl Operation` that could have
//! been written by hand. The first line of the doc comment is the summary, the rest the description.

mod event;

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as TokenStream2};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{
    Attribute, DeriveInput, Error, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitInt, LitStr, Meta, Pat,
    PatType, Result, Token, Type, TypeReference,
};

/// What stands in the attribute's brackets.
struct Declaration {
    method: Ident,
    path: LitStr,
    /// `None` is `scope = any_key`, or `session`.
    scope: Option<LitStr>,
    /// The permission that a member needs, for an operation of the dashboard.
    session: Option<LitStr>,
    when_blocked: bool,
    energy: bool,
    recent_sign_in: Option<Ident>,
    ceiling: Option<LitInt>,
    body_mib: Option<LitInt>,
    deprecated: Option<Deprecation>,
    /// The function that serves several calls in one transaction.
    together: Option<Ident>,
    /// Whether it answers with JSON-RPC instead of the envelope.
    json_rpc: bool,
}

/// `deprecated(since = "…", sunset = "…", alternative = "…")`. The registry checks what is in it.
struct Deprecation {
    since: LitStr,
    sunset: LitStr,
    alternative: LitStr,
}

impl Parse for Deprecation {
    fn parse(input: ParseStream) -> Result<Self> {
        let inside;
        syn::parenthesized!(inside in input);
        let field = |name: &str| -> Result<LitStr> {
            let found: Ident = inside.parse()?;
            if found != name {
                return Err(Error::new(found.span(), "say since, sunset and alternative, in this order"));
            }
            inside.parse::<Token![=]>()?;
            let value = inside.parse()?;
            inside.parse::<Option<Token![,]>>()?;
            Ok(value)
        };
        let fields =
            Self { since: field("since")?, sunset: field("sunset")?, alternative: field("alternative")? };
        if inside.is_empty() { Ok(fields) } else { Err(inside.error("nothing else is known here")) }
    }
}

impl Parse for Declaration {
    fn parse(input: ParseStream) -> Result<Self> {
        let method = parse_method(input)?;
        let path: LitStr = input.parse()?;
        let (mut scope, mut energy, mut ceiling, mut body_mib, mut deprecated, mut together) =
            (None, false, None, None, None, None);
        let (mut recent_sign_in, mut session) = (None, None);
        let (mut json_rpc, mut when_blocked) = (false, false);
        while input.parse::<Option<Token![,]>>()?.is_some() && !input.is_empty() {
            let name: Ident = input.parse()?;
            match name.to_string().as_str() {
                "scope" => {
                    input.parse::<Token![=]>()?;
                    scope = Some(parse_scope(input)?);
                }
                "session" => {
                    input.parse::<Token![=]>()?;
                    session = Some(input.parse()?);
                }
                "when_blocked" => when_blocked = true,
                "energy" => energy = true,
                "json_rpc" => json_rpc = true,
                "recent_sign_in" => {
                    input.parse::<Token![=]>()?;
                    recent_sign_in = Some(parse_recent_sign_in(input)?);
                }
                "ceiling" => {
                    input.parse::<Token![=]>()?;
                    ceiling = Some(input.parse()?);
                }
                "body_mib" => {
                    input.parse::<Token![=]>()?;
                    body_mib = Some(parse_mib(input)?);
                }
                "deprecated" => deprecated = Some(input.parse()?),
                "together" => {
                    input.parse::<Token![=]>()?;
                    together = Some(input.parse()?);
                }
                _ => {
                    let known = "known here: scope, session, when_blocked, energy, json_rpc, recent_sign_in, ceiling, \
                                 body_mib, deprecated, together";
                    return Err(Error::new(name.span(), known));
                }
            }
        }
        let scope = who_may(scope, session.as_ref(), &path)?;
        Ok(Self {
            method,
            path,
            scope,
            session,
            when_blocked,
            energy,
            recent_sign_in,
            ceiling,
            body_mib,
            deprecated,
            together,
            json_rpc,
        })
    }
}

fn parse_method(input: ParseStream) -> Result<Ident> {
    let method: Ident = input.parse()?;
    if ["get", "post", "put", "patch", "delete"].contains(&method.to_string().as_str()) {
        return Ok(method);
    }
    Err(Error::new(method.span(), "begin with get, post, put, patch or delete"))
}

/// Checks that an operation states a scope or a permission, and not both. Those of the dashboard have a path of their own,
/// by which they come into its document.
fn who_may(scope: Option<Option<LitStr>>, session: Option<&LitStr>, path: &LitStr) -> Result<Option<LitStr>> {
    let refused = |rule| Err(Error::new(path.span(), rule));
    match (scope, session, path.value().starts_with("/dashboard/")) {
        (Some(scope), None, false) => Ok(scope),
        (None, Some(_), true) => Ok(None),
        (Some(_), Some(_), _) => refused("say scope or session, not both"),
        (None, None, _) => refused("say scope = \"…\", scope = any_key or session = \"…\""),
        (Some(_), None, true) => refused("operations under /dashboard/ say session = \"…\""),
        (None, Some(_), false) => refused("operations with session = \"…\" are under /dashboard/"),
    }
}

fn parse_scope(input: ParseStream) -> Result<Option<LitStr>> {
    if input.peek(LitStr) {
        return Ok(Some(input.parse()?));
    }
    let word: Ident = input.parse()?;
    if word == "any_key" { Ok(None) } else { Err(Error::new(word.span(), "a scope in quotes, or any_key")) }
}

/// The name of a variant of `RecentSignIn`.
fn parse_recent_sign_in(input: ParseStream) -> Result<Ident> {
    let word: Ident = input.parse()?;
    match word.to_string().as_str() {
        name @ ("always" | "secrets") => Ok(format_ident!("{}", pascal(name))),
        _ => Err(Error::new(word.span(), "always or secrets")),
    }
}

/// No body is larger than an upload (decision 14).
fn parse_mib(input: ParseStream) -> Result<LitInt> {
    let number: LitInt = input.parse()?;
    match number.base10_parse::<usize>()? {
        1..=128 => Ok(number),
        _ => Err(Error::new(number.span(), "from 1 to 128")),
    }
}

/// How the function gets at the database.
enum Access {
    /// It needs none.
    Nothing,
    /// `&mut Read`
    Read,
    /// `&mut Tx`
    Tx,
    /// `&Cx`, in an `async fn`
    Cx,
}

/// Declares an operation. See the crate's documentation.
#[proc_macro_attribute]
pub fn operation(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let declaration = syn::parse_macro_input!(attribute as Declaration);
    let function = syn::parse_macro_input!(item as ItemFn);
    expand(&declaration, &function).unwrap_or_else(Error::into_compile_error).into()
}

/// Declares a type of event, or one in each variant of an enum.
///
/// ```text
/// #[derive(Event)]
/// #[event(scope = "runs:read", subject = "run", id = "run_id")]
/// enum RunEvent<'a> {
///     /// A run ended with an answer.
///     #[event(name = "run.completed")]
///     Completed(RunEnded<'a>),
///     …
/// }
/// ```
/// The first paragraph of a doc comment is the description. What a variant holds, or a struct, is the event's data and
/// derives `Serialize` and `ToSchema`. `id` is the path in it to the subject's id, and `contact = "…"` names the field with the
/// contact that the event is about.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(item: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(item as DeriveInput);
    event::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// The arguments of an operation's function.
struct Arguments {
    access: Access,
    /// What the function is called with.
    pass: Vec<TokenStream2>,
    /// Statements that read the input.
    take: Vec<TokenStream2>,
    /// The variables that hold it.
    variables: Vec<Ident>,
    /// The types of the input, with the names that they are known by.
    types: Vec<Type>,
    names: Vec<String>,
}

impl Arguments {
    fn of(function: &ItemFn, path: &LitStr) -> Result<Self> {
        let mut all = Self {
            access: Access::Nothing,
            pass: Vec::new(),
            take: Vec::new(),
            variables: Vec::new(),
            types: Vec::new(),
            names: Vec::new(),
        };
        for argument in &function.sig.inputs {
            let FnArg::Typed(argument) = argument else {
                return Err(Error::new(argument.span(), "an operation is a plain function"));
            };
            match &*argument.ty {
                Type::Reference(reference) => all.add_reference(reference)?,
                _ => all.add_input(argument, path)?,
            }
        }
        Ok(all)
    }

    fn add_reference(&mut self, reference: &TypeReference) -> Result<()> {
        let access = match last_word(&reference.elem).as_deref() {
            Some("Read") => Access::Read,
            Some("Tx") => Access::Tx,
            Some("Cx") => Access::Cx,
            Some("Caller") => {
                self.pass.push(quote!(caller));
                return Ok(());
            }
            _ => {
                let rule = "by reference: &mut Read, &mut Tx, &Cx or &Caller";
                return Err(Error::new(reference.span(), rule));
            }
        };
        self.access = access;
        self.pass.push(quote!(access));
        Ok(())
    }

    fn add_input(&mut self, argument: &PatType, path: &LitStr) -> Result<()> {
        let name = camel(&innermost(&argument.pat)?.to_string());
        let variable = format_ident!("input_{}", self.types.len());
        let kind = &argument.ty;
        if last_word(kind).as_deref() == Some("Path") && !path.value().contains(&format!("{{{name}}}")) {
            let message = format!("{} has no {{{name}}}", path.value());
            return Err(Error::new(argument.pat.span(), message));
        }
        self.take.push(quote!(let #variable = <#kind as ::operation::FromInput>::from_input(input, #name)?;));
        self.pass.push(quote!(#variable));
        self.variables.push(variable);
        self.types.push((**kind).clone());
        self.names.push(name);
        Ok(())
    }
}

/// The function as the pipeline calls it.
fn call(
    function: &ItemFn,
    access: &Access,
    pass: &[TokenStream2],
    variables: &[Ident],
) -> Result<TokenStream2> {
    let name = &function.sig.ident;
    Ok(match (access, function.sig.asyncness.is_some()) {
        (Access::Nothing, false) => quote!(::operation::Call::Caller(::std::boxed::Box::new(move |caller| {
            ::operation::Answer::reply(#name(#(#pass),*)?)
        }))),
        (Access::Read, false) => {
            quote!(::operation::Call::Read(::std::boxed::Box::new(move |access, caller| {
                ::operation::Answer::reply(#name(#(#pass),*)?)
            })))
        }
        // The database may have to run a transaction again, so the input is given away as a copy.
        (Access::Tx, false) => quote!(::operation::Call::Tx(::std::boxed::Box::new(move |access, caller| {
            #(let #variables = ::std::clone::Clone::clone(&#variables);)*
            ::operation::Answer::reply(#name(#(#pass),*)?)
        }))),
        (Access::Cx, true) => quote!(::operation::Call::Cx(::std::boxed::Box::new(move |access| {
            ::std::boxed::Box::pin(async move {
                let caller = &access.caller;
                let access = &*access;
                let _ = caller;
                ::operation::Answer::reply(#name(#(#pass),*).await?)
            })
        }))),
        _ => return Err(Error::new(name.span(), "an async operation takes &Cx, the others do not")),
    })
}

/// A function that is one transaction, and the one that serves several calls at once, as the pipeline calls them.
fn batched_call(
    function: &ItemFn,
    together: &Ident,
    access: &Access,
    pass: &[TokenStream2],
    (variables, types): (&[Ident], &[Type]),
) -> Result<TokenStream2> {
    let name = &function.sig.ident;
    if !matches!(access, Access::Tx) {
        return Err(Error::new(name.span(), "only operations that take &mut Tx are served together"));
    }
    Ok(quote!(::operation::Call::Batched(::operation::BatchedCall::new(
        input.waiting_calls(),
        (#(#variables,)*),
        // The database may have to run a transaction again, so the input is given away as a copy.
        |access, caller, inputs: &(#(#types,)*)| {
            let (#(#variables,)*) = ::std::clone::Clone::clone(inputs);
            ::operation::Answer::reply(#name(#(#pass),*)?)
        },
        |access, calls| {
            let answers = #together(access, calls)?.into_iter();
            answers.map(|answer| answer.map(::operation::Answer::reply).transpose()).collect()
        },
    ))))
}

fn expand(declaration: &Declaration, function: &ItemFn) -> Result<TokenStream2> {
    let name = &function.sig.ident;
    let visibility = &function.vis;
    let structure = format_ident!("{}", pascal(&name.to_string()));
    let (summary, description) = doc_text(&function.attrs, name.span())?;

    let Arguments { access, pass, take, variables, types, names } =
        Arguments::of(function, &declaration.path)?;
    let changes = matches!(access, Access::Tx | Access::Cx);
    let call = match &declaration.together {
        Some(together) => batched_call(function, together, &access, &pass, (&variables, &types))?,
        None => call(function, &access, &pass, &variables)?,
    };
    let answer = answer_type(function)?;
    let declared = declared_meta(declaration);
    let id = camel(&name.to_string());
    Ok(quote! {
        #function

        #[doc = #summary]
        #visibility struct #structure;

        impl ::operation::Operation for #structure {
            fn meta(&self) -> &'static ::operation::Meta {
                static META: ::operation::Meta = ::operation::Meta {
                    id: #id,
                    #declared
                    changes: #changes,
                    paging: ::operation::Paging::first(&[#(<#types as ::operation::FromInput>::PAGING),*]),
                    summary: #summary,
                    description: #description,
                    file: file!(),
                };
                &META
            }

            fn describe(&self, describe: &mut ::operation::Describe) {
                #(<#types as ::operation::FromInput>::describe(describe, #names);)*
                <#answer as ::operation::Answer>::describe(describe);
            }

            #[allow(unused_variables, reason = "an operation may need neither input nor caller")]
            fn bind(&self, input: &::operation::Input<'_>) -> ::model::Result<::operation::Call> {
                #(#take)*
                Ok(#call)
            }
        }
    })
}

/// The fields of `Meta` that the attribute states.
fn declared_meta(declaration: &Declaration) -> TokenStream2 {
    let Declaration { path, energy, json_rpc, when_blocked, .. } = declaration;
    let method = format_ident!("{}", pascal(&declaration.method.to_string()));
    let scope = match &declaration.scope {
        Some(text) => quote!(::std::option::Option::Some(const { ::model::Scope::literal(#text) })),
        None => quote!(::std::option::Option::None),
    };
    let session = match &declaration.session {
        Some(text) => quote!(::std::option::Option::Some(const { ::operation::Permission::literal(#text) })),
        None => quote!(::std::option::Option::None),
    };
    let ceiling = declaration.ceiling.as_ref().map_or_else(|| quote!(100), |number| quote!(#number));
    let deprecated = match &declaration.deprecated {
        Some(Deprecation { since, sunset, alternative }) => quote!(::std::option::Option::Some(
            ::operation::Deprecated { since: #since, sunset: #sunset, alternative: #alternative }
        )),
        None => quote!(::std::option::Option::None),
    };
    let recent_sign_in = match &declaration.recent_sign_in {
        Some(variant) => quote!(::std::option::Option::Some(::operation::RecentSignIn::#variant)),
        None => quote!(::std::option::Option::None),
    };
    let body_mib = declaration.body_mib.as_ref().map_or_else(|| quote!(1), |number| quote!(#number));
    quote! {
        method: ::operation::Method::#method,
        path: #path,
        scope: #scope,
        session: #session,
        when_blocked: #when_blocked,
        energy: #energy,
        json_rpc: #json_rpc,
        recent_sign_in: #recent_sign_in,
        ceiling: #ceiling,
        body_mib: #body_mib,
        deprecated: #deprecated,
    }
}

/// `T` of `-> Result<T>`.
fn answer_type(function: &ItemFn) -> Result<Type> {
    let refused = || Error::new(function.sig.span(), "an operation returns Result<…> of an answer");
    let syn::ReturnType::Type(_, output) = &function.sig.output else { return Err(refused()) };
    let Type::Path(path) = &**output else { return Err(refused()) };
    let Some(last) = path.path.segments.last() else { return Err(refused()) };
    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else { return Err(refused()) };
    match arguments.args.first() {
        Some(syn::GenericArgument::Type(kind)) if last.ident == "Result" => Ok(kind.clone()),
        _ => Err(refused()),
    }
}

/// The first paragraph of the doc comment, and the rest.
fn doc_text(attributes: &[Attribute], span: Span) -> Result<(String, String)> {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { continue };
        if pair.path.is_ident("doc") {
            lines.push(text.value().trim().to_owned());
        }
    }
    let text = lines.join("\n");
    let (summary, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    if summary.trim().is_empty() {
        return Err(Error::new(span, "a doc comment is needed: it is the contract's text"));
    }
    Ok((summary.replace('\n', " ").trim().to_owned(), rest.trim().to_owned()))
}

fn last_word(kind: &Type) -> Option<String> {
    let Type::Path(path) = kind else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// `name` of `name` and of `Wrapper(name)`.
fn innermost(pattern: &Pat) -> Result<Ident> {
    match pattern {
        Pat::Ident(name) => Ok(name.ident.clone()),
        Pat::TupleStruct(tuple) if tuple.elems.len() == 1 => {
            tuple.elems.first().map_or_else(|| Err(Error::new(tuple.span(), "name the argument")), innermost)
        }
        other => Err(Error::new(other.span(), "write `name: Type` or `Wrapper(name): Wrapper<Type>`")),
    }
}

fn pascal(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        })
        .collect()
}

fn camel(name: &str) -> String {
    let name = pascal(name);
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

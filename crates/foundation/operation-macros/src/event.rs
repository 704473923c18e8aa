//! `#[derive(Event)]`: what is published of a type of event, from the type of its data.

use crate::doc_text;
use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Generics, Ident, LitStr, Result, Token};

/// What stands in `#[event(…)]`.
#[derive(Default, Clone)]
struct Settings {
    name: Option<LitStr>,
    scope: Option<LitStr>,
    subject: Option<LitStr>,
    id: Option<LitStr>,
    contact: Option<Ident>,
    named: Option<Ident>,
}

impl Parse for Settings {
    fn parse(input: ParseStream) -> Result<Self> {
        let mut settings = Self::default();
        while !input.is_empty() {
            let word: Ident = input.parse()?;
            input.parse::<Token![=]>()?;
            match word.to_string().as_str() {
                "name" => settings.name = Some(input.parse()?),
                "scope" => settings.scope = Some(input.parse()?),
                "subject" => settings.subject = Some(input.parse()?),
                "id" => settings.id = Some(input.parse()?),
                "contact" => {
                    let field: LitStr = input.parse()?;
                    settings.contact = Some(field.parse()?);
                }
                "named" => {
                    let field: LitStr = input.parse()?;
                    settings.named = Some(field.parse()?);
                }
                _ => {
                    let known = "known here: name, named, scope, subject, id, contact";
                    return Err(Error::new(word.span(), known));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(settings)
    }
}

impl Settings {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let mut own = attributes.iter().filter(|attribute| attribute.path().is_ident("event"));
        own.next().map_or_else(|| Ok(Self::default()), Attribute::parse_args)
    }

    /// What is said of all variants of an enum, where one says nothing else.
    fn or(self, all: &Self) -> Self {
        Self {
            name: self.name,
            scope: self.scope.or_else(|| all.scope.clone()),
            subject: self.subject.or_else(|| all.subject.clone()),
            id: self.id.or_else(|| all.id.clone()),
            contact: self.contact.or_else(|| all.contact.clone()),
            named: self.named,
        }
    }
}

/// A type of event: its data, and how a value of it is told from the others.
struct Kind {
    settings: Settings,
    description: String,
    /// The type of the data.
    data: TokenStream,
    /// A pattern that binds `data`.
    pattern: TokenStream,
    span: proc_macro2::Span,
}

fn kinds(input: &DeriveInput) -> Result<Vec<Kind>> {
    let (name, all) = (&input.ident, Settings::of(&input.attrs)?);
    match &input.data {
        Data::Struct(_) => {
            let (_, generics, _) = input.generics.split_for_impl();
            let description = doc_text(&input.attrs, name.span())?.0;
            let (data, pattern) = (quote!(#name #generics), quote!(data));
            Ok(vec![Kind { settings: all, description, data, pattern, span: name.span() }])
        }
        Data::Enum(variants) => variants
            .variants
            .iter()
            .map(|variant| {
                let (word, span) = (&variant.ident, variant.span());
                let Fields::Unnamed(fields) = &variant.fields else {
                    return Err(Error::new(span, "a variant holds the event's data, and nothing else"));
                };
                let Some(field) = fields.unnamed.first().filter(|_| fields.unnamed.len() == 1) else {
                    return Err(Error::new(span, "a variant holds the event's data, and nothing else"));
                };
                let kind = &field.ty;
                Ok(Kind {
                    settings: Settings::of(&variant.attrs)?.or(&all),
                    description: doc_text(&variant.attrs, span)?.0,
                    data: quote!(#kind),
                    pattern: quote!(Self::#word(data)),
                    span,
                })
            })
            .collect(),
        Data::Union(_) => Err(Error::new(name.span(), "an event is a struct or an enum")),
    }
}

/// The row of a type in `Event::TYPES`.
fn row(kind: &Kind) -> Result<TokenStream> {
    let missing = |what: &str| Error::new(kind.span, format!("say {what} in #[event(…)]"));
    let Settings { name, scope, subject, id, .. } = &kind.settings;
    let name = name.as_ref().ok_or_else(|| missing("name = \"…\""))?;
    let scope = scope.as_ref().ok_or_else(|| missing("scope = \"…\""))?;
    let subject = match (subject, id) {
        (Some(subject), Some(id)) => quote!(::core::option::Option::Some((#subject, #id))),
        (None, None) => quote!(::core::option::Option::None),
        _ => return Err(missing("both subject = \"…\" and id = \"…\"")),
    };
    let (description, data) = (&kind.description, &kind.data);
    Ok(quote!(::model::EventMeta {
        name: #name,
        description: #description,
        scope: const { ::model::Scope::literal(#scope) },
        subject: #subject,
        schema: ::model::schema_of::<#data>,
    }))
}

/// A function that compiles where the data has the field that the path to the subject's id begins with.
fn check(kind: &Kind, generics: &Generics) -> Result<Option<TokenStream>> {
    let Some(path) = &kind.settings.id else { return Ok(None) };
    let path_text = path.value();
    let first = path_text.split('.').next().unwrap_or_default();
    let field: Ident = LitStr::new(first, path.span()).parse()?;
    let data = &kind.data;
    Ok(Some(quote!({
        fn subject_is_in_the_data #generics (data: &#data) {
            let _ = &data.#field;
        }
    })))
}

pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let kinds = kinds(input)?;
    let rows = kinds.iter().map(row).collect::<Result<Vec<_>>>()?;
    let checks = kinds.iter().map(|kind| check(kind, &input.generics)).collect::<Result<Vec<_>>>()?;
    let checks = checks.into_iter().flatten();
    let scopes = kinds.iter().filter_map(|kind| kind.settings.scope.as_ref());
    let places = 0..kinds.len();
    let patterns: Vec<_> = kinds.iter().map(|kind| &kind.pattern).collect();
    let contacts: Vec<_> = kinds
        .iter()
        .map(|kind| match &kind.settings.contact {
            Some(field) => quote!(::core::convert::Into::into(::core::clone::Clone::clone(&data.#field))),
            None => quote!({
                let _ = data;
                ::core::option::Option::None
            }),
        })
        .collect();
    let names: Vec<_> = kinds
        .iter()
        .map(|kind| match &kind.settings.named {
            Some(field) => quote!(::std::borrow::Cow::Owned(::core::clone::Clone::clone(&data.#field))),
            None => quote!({
                let _ = data;
                ::std::borrow::Cow::Borrowed(::model::Event::meta(self).name)
            }),
        })
        .collect();
    let (name, (generics, arguments, bounds)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        // An associated constant is only looked at where it is used; a scope that does not exist must not wait for that.
        const _: () = {
            #(let _ = ::model::Scope::literal(#scopes);)*
            #(#[allow(dead_code, reason = "compiling it is the check")] #checks)*
        };

        #[automatically_derived]
        impl #generics ::model::Event for #name #arguments #bounds {
            const TYPES: &'static [::model::EventMeta] = &[#(#rows),*];

            fn meta(&self) -> &'static ::model::EventMeta {
                #[allow(unused_variables, reason = "the type is asked for, not the data")]
                let place = match self { #(#patterns => #places),* };
                &<Self as ::model::Event>::TYPES[place]
            }

            fn name(&self) -> ::std::borrow::Cow<'static, str> {
                match self { #(#patterns => #names),* }
            }

            fn data(&self) -> ::model::Result<::model::JsonText> {
                match self { #(#patterns => ::model::print_data(data)),* }
            }

            fn contact_id(&self) -> ::core::option::Option<i64> {
                match self { #(#patterns => #contacts),* }
            }
        }
    })
}

//! `#[testkit::both]`: one test for both databases.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as TokenStream2;
use quote::quote;
use syn::{Error, ItemFn, Result};

/// Makes an `async fn name(kind: Kind)` a test on SQLite and one on PostgreSQL: `name::sqlite` and `name::postgres`.
///
/// ```text
/// #[testkit::both]
/// async fn notes_are_kept(kind: Kind) { … }
/// ```
#[proc_macro_attribute]
pub fn both(attribute: TokenStream, function: TokenStream) -> TokenStream {
    expand(&attribute.into(), function.into()).unwrap_or_else(Error::into_compile_error).into()
}

fn expand(attribute: &TokenStream2, function: TokenStream2) -> Result<TokenStream2> {
    let function: ItemFn = syn::parse2(function)?;
    if !attribute.is_empty() {
        return Err(Error::new_spanned(attribute, "`both` takes no arguments"));
    }
    if function.sig.asyncness.is_none() || function.sig.inputs.len() != 1 {
        return Err(Error::new_spanned(
            &function.sig,
            "`both` needs an `async fn` with one argument of the type `Kind`",
        ));
    }
    let name = &function.sig.ident;
    Ok(quote! {
        #function

        mod #name {
            #[::tokio::test]
            async fn sqlite() {
                super::#name(::testkit::Kind::Sqlite).await;
            }

            #[::tokio::test]
            async fn postgres() {
                super::#name(::testkit::Kind::Postgres).await;
            }
        }
    })
}

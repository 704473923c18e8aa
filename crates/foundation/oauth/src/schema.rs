//! The tables of this crate for diesel, on both databases.

diesel::table! {
    oauth_apps (id) {
        id -> Text,
        workspace_id -> BigInt,
        name -> Text,
        redirect_uris -> Text,
        auth_method -> Text,
        secret_hash -> Nullable<Binary>,
        old_secret_hash -> Nullable<Binary>,
        old_secret_until -> Nullable<Timestamp>,
        jwks -> Nullable<Text>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        revoked_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    oauth_grants (key_id) {
        key_id -> Text,
        account_id -> Text,
        workspace_id -> BigInt,
        member_id -> BigInt,
        env -> Text,
        client_id -> Text,
        client_key -> Text,
        client_name -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    oauth_codes (code_hash) {
        code_hash -> Binary,
        key_id -> Text,
        client_id -> Text,
        redirect_uri -> Text,
        challenge -> Text,
        resource -> Text,
        scopes -> Text,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        used_at -> Nullable<Timestamp>,
        family_id -> Nullable<Text>,
    }
}

diesel::table! {
    oauth_families (id) {
        id -> Text,
        key_id -> Text,
        client_id -> Text,
        resource -> Text,
        refresh_hash -> Binary,
        generation -> BigInt,
        created_at -> Timestamp,
        refreshed_at -> Timestamp,
        idle_end_at -> Timestamp,
        ends_at -> Timestamp,
        revoked_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    oauth_used_refresh_tokens (refresh_hash) {
        refresh_hash -> Binary,
        family_id -> Text,
        used_at -> Timestamp,
        answer -> Nullable<Text>,
    }
}

diesel::table! {
    oauth_access_tokens (token_hash) {
        token_hash -> Binary,
        family_id -> Text,
        key_id -> Text,
        resource -> Text,
        scopes -> Text,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        revoked_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    oauth_used_assertions (hash) {
        hash -> Binary,
        expires_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    oauth_apps,
    oauth_grants,
    oauth_codes,
    oauth_families,
    oauth_used_refresh_tokens,
    oauth_access_tokens
);

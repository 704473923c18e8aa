//! The tables of this crate for diesel, on both databases.

diesel::table! {
    accounts (id) {
        id -> Text,
        email -> Text,
        email_key -> Text,
        name -> Text,
        password_hash -> Nullable<Text>,
        password_changed_at -> Nullable<Timestamp>,
        operator -> Bool,
        disabled_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        locale -> Text,
    }
}

diesel::table! {
    memberships (account_id, workspace_id) {
        account_id -> Text,
        workspace_id -> BigInt,
        member_id -> BigInt,
        live_key_id -> Text,
        test_key_id -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    sessions (id) {
        id -> Text,
        secret_hash -> Binary,
        account_id -> Text,
        created_at -> Timestamp,
        authenticated_at -> Timestamp,
        last_seen_at -> Timestamp,
        ends_at -> Timestamp,
        revoked_at -> Nullable<Timestamp>,
        address -> Text,
        user_agent -> Text,
    }
}

diesel::table! {
    one_time_links (secret_hash) {
        secret_hash -> Binary,
        purpose -> Text,
        account_id -> Nullable<Text>,
        email -> Nullable<Text>,
        workspace_id -> Nullable<BigInt>,
        member_id -> Nullable<BigInt>,
        created_by -> Text,
        created_at -> Timestamp,
        expires_at -> Timestamp,
        used_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    sign_in_failures (counter) {
        counter -> Binary,
        failures -> BigInt,
        last_at -> Timestamp,
        next_allowed_at -> Timestamp,
    }
}

diesel::table! {
    audit_log (id) {
        id -> Text,
        created_at -> Timestamp,
        workspace_id -> Nullable<BigInt>,
        account_id -> Nullable<Text>,
        action -> Text,
        target -> Text,
        details -> Text,
        address -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    accounts,
    memberships,
    sessions,
    one_time_links,
    sign_in_failures,
    audit_log
);

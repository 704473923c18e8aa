//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    conversations (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        channel_id -> BigInt,
        contact_id -> BigInt,
        status -> Text,
        unread_count -> BigInt,
        last_message_id -> BigInt,
        last_message_at -> Timestamp,
        last_inbound_at -> Nullable<Timestamp>,
        last_outbound_at -> Nullable<Timestamp>,
        first_reply_at -> Nullable<Timestamp>,
        snoozed_until -> Nullable<Timestamp>,
        closed_at -> Nullable<Timestamp>,
        close_reason -> Nullable<Text>,
        reply_since -> Nullable<Timestamp>,
        reply_due_at -> Nullable<Timestamp>,
        reply_epoch -> Nullable<BigInt>,
        reply_run_id -> Nullable<Text>,
        reply_run_upto -> Nullable<BigInt>,
        reply_upto -> BigInt,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        offered_upto -> BigInt,
    }
}

diesel::table! {
    messages (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        conversation_id -> BigInt,
        channel_id -> BigInt,
        contact_id -> BigInt,
        direction -> Text,
        sender_type -> Text,
        sender_id -> Nullable<Text>,
        message_type -> Text,
        content -> Text,
        detail -> Nullable<Text>,
        reply_to_id -> Nullable<BigInt>,
        status -> Nullable<Text>,
        status_rank -> BigInt,
        error -> Nullable<Text>,
        attempt -> BigInt,
        client_key -> Nullable<Text>,
        provider_message_id -> Nullable<Text>,
        provider_at -> Nullable<Timestamp>,
        run_id -> Nullable<Text>,
        broadcast_id -> Nullable<BigInt>,
        edited_at -> Nullable<Timestamp>,
        deleted_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        chain -> Nullable<Text>,
    }
}

diesel::table! {
    message_statuses (id) {
        id -> BigInt,
        message_id -> BigInt,
        status -> Text,
        error -> Nullable<Text>,
        reported_at -> Timestamp,
        created_at -> Timestamp,
    }
}

diesel::table! {
    early_statuses (id) {
        id -> BigInt,
        channel_id -> BigInt,
        provider_message_id -> Text,
        status -> Text,
        error -> Nullable<Text>,
        reported_at -> Timestamp,
        created_at -> Timestamp,
    }
}

diesel::table! {
    message_changes (id) {
        id -> BigInt,
        channel_id -> BigInt,
        provider_change_id -> Text,
        provider_message_id -> Text,
        kind -> Text,
        author -> Nullable<Text>,
        content -> Nullable<Text>,
        waits -> Bool,
        changed_at -> Timestamp,
        created_at -> Timestamp,
    }
}

diesel::table! {
    identity_changes (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        kind -> Text,
        old_value -> Text,
        new_value -> Text,
        changed_at -> Timestamp,
        created_at -> Timestamp,
    }
}

diesel::table! {
    message_attachments (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        message_id -> BigInt,
        contact_id -> BigInt,
        media_type -> Text,
        status -> Text,
        file_id -> Nullable<BigInt>,
        provider_media_id -> Nullable<Text>,
        mime_type -> Nullable<Text>,
        name -> Nullable<Text>,
        is_voice -> Bool,
        duration_ms -> Nullable<BigInt>,
        transcript -> Nullable<Text>,
        transcript_status -> Text,
        attempts -> BigInt,
        next_attempt_at -> Nullable<Timestamp>,
        last_error -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    files_without_message (file_id) {
        file_id -> BigInt,
        workspace_id -> BigInt,
        received_at -> Timestamp,
    }
}

diesel::table! {
    message_outbox (message_id) {
        message_id -> BigInt,
        channel_id -> BigInt,
        conversation_id -> BigInt,
        priority -> BigInt,
        due_at -> Timestamp,
        expires_at -> Timestamp,
        attempts -> BigInt,
        claimed_epoch -> Nullable<BigInt>,
    }
}

diesel::table! {
    held_message_events (message_id) {
        message_id -> BigInt,
        channel_id -> BigInt,
        conversation_id -> BigInt,
        due_at -> Timestamp,
    }
}

diesel::table! {
    message_terms (message_id, term) {
        message_id -> BigInt,
        term -> Text,
        workspace_id -> BigInt,
    }
}

diesel::table! {
    conversation_viewers (conversation_id, member_id) {
        conversation_id -> BigInt,
        member_id -> BigInt,
        is_writing -> Bool,
        seen_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    conversations,
    messages,
    message_statuses,
    early_statuses,
    message_changes,
    identity_changes,
    message_attachments,
    files_without_message,
    message_outbox,
    held_message_events,
    message_terms,
    conversation_viewers,
);

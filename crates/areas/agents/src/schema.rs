//! Tables of agents, as diesel sees them on both databases.

diesel::table! {
    agents (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        name_key -> Text,
        status -> Text,
        is_default -> Bool,
        version -> BigInt,
        settings -> Text,
        metadata -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    agent_versions (agent_id, version) {
        agent_id -> BigInt,
        version -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        settings -> Text,
        tools -> Text,
        key_id -> Nullable<Text>,
        restored_from -> Nullable<BigInt>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    agent_tools (agent_id, name) {
        agent_id -> BigInt,
        name -> Text,
        workspace_id -> BigInt,
        kind -> Text,
        settings -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(agents, agent_versions, agent_tools);

DROP TABLE inbound_keys;
DROP TABLE inbound_requests;
DROP TABLE inbound_webhooks;

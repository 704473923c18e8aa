DROP TABLE contact_merges;
DROP TABLE contact_consents;
DROP TABLE contact_segments;
DROP TABLE contact_notes;

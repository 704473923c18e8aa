DROP TABLE contact_segments;
DROP TABLE contact_notes;

package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Words that an earlier text had for a concept of the glossary, each with the one term that it has now.
var chineseTerms = map[string]string{
	"审计": "对账", "账实相符": "准确", "强杀": "强制结束", "主节点": "领导者", "丢失的更新": "更新丢失", "丢失更新": "更新丢失", "已预留": "已预占",
	"定时任务": "定时器", "购物篮": "购物车", "客户(?:[^端]|$)": "顾客", "栅栏令牌": "隔离令牌",
}

// Each concept has one term in Chinese: in the README, the glossary, the page, the labs and the course.
func TestChineseTextsHaveOneTermPerConcept(t *testing.T) {
	t.Parallel()
	files := []string{"README.zh-CN.md", "docs/glossary.md", "internal/httpapi/page/static/text.js"}
	for _, pattern := range []string{"internal/show/lab/texts/*.zh.*", "docs/labs/solutions/*.zh.md", "docs/*.zh.md", "docs/course/*.zh.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		for _, path := range found {
			files = append(files, strings.TrimPrefix(filepath.ToSlash(path), root+"/"))
		}
	}
	glossary, err := os.ReadFile(filepath.Join(root, "docs/glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	for word, term := range chineseTerms {
		if term != "已预占" && !strings.Contains(string(glossary), term) { // the glossary has the noun 预占
			t.Errorf("the glossary lacks %s", term)
		}
		form := regexp.MustCompile(word)
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if found := form.FindString(line); found != "" {
					t.Errorf("%s:%d: %s; the term is %s", file, i+1, found, term)
				}
			}
		}
	}
}

// A page in Chinese leads to pages and pictures in Chinese where there are any, and to its own English page.
func TestChinesePagesLeadToChineseOnes(t *testing.T) {
	t.Parallel()
	pages, links := readPages(t), 0
	for _, p := range pages {
		own, chinese := strings.CutSuffix(p.path, ".zh.md")
		if !chinese {
			continue
		}
		for _, l := range p.links {
			name, ending := strings.TrimSuffix(l.file, filepath.Ext(l.file)), filepath.Ext(l.file)
			if strings.HasSuffix(name, ".zh") {
				links++
			}
			if _, err := os.Stat(filepath.Join(root, name+".zh"+ending)); err == nil && l.file != own+".md" {
				t.Errorf("%s leads to %s, which is there in Chinese", p.path, l.file)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links lead to pages in Chinese", links)
	}
}
